# SPDX-License-Identifier: BSD-2-Clause
"""legal_lines.py FILE...: prints the functions of each FILE and their lines, according to the interpreter.

FILE is a name as in code objects; "<frozen NAME>" is a module frozen into the interpreter.
Prints JSON: {file: {name: [line, ...]}}. Line 0 means an instruction without a line. Names are
qualified from 3.11 on. A file that cannot be read has no functions.
"""

import dis
import json
import re
import sys
import types
import warnings

# The names that their frozen code is stored under.
FROZEN_AS = {"importlib._bootstrap": "_frozen_importlib",
             "importlib._bootstrap_external": "_frozen_importlib_external"}


def lines_of(code):
    """Every line that an instruction of CODE has, and the one it starts at."""
    if hasattr(code, "co_lines"):
        lines = {line or 0 for _, _, line in code.co_lines()}
    else:
        lines = {line for _, line in dis.findlinestarts(code)}
    return lines | {code.co_firstlineno}


def collect(code, into):
    into.setdefault(getattr(code, "co_qualname", code.co_name), set()).update(lines_of(code))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            collect(constant, into)


def code_of(file):
    frozen = re.match("<frozen (.*)>$", file)
    if frozen:
        import _imp
        return _imp.get_frozen_object(FROZEN_AS.get(frozen.group(1), frozen.group(1)))
    with open(file, "rb") as source:
        return compile(source.read(), file, "exec")


def main():
    warnings.simplefilter("ignore")
    answers = {}
    for file in sys.argv[1:]:
        found = answers[file] = {}
        try:
            collect(code_of(file), found)
        except (EnvironmentError, ImportError):
            pass
    print(json.dumps({file: {name: sorted(lines) for name, lines in found.items()}
                      for file, found in answers.items()}))


main()
