# SPDX-License-Identifier: BSD-2-Clause
"""legal_lines.py FILE: each function of FILE and its lines, by the interpreter's own account.

Prints JSON: {name: [line, ...]}; 0 stands for an instruction without a line.
"""

import dis
import io
import json
import sys
import types


def lines_of(code):
    """Every line that an instruction of CODE has, and the one it starts at."""
    if hasattr(code, "co_lines"):
        lines = {line or 0 for _, _, line in code.co_lines()}
    else:
        lines = {line for _, line in dis.findlinestarts(code)}
    return lines | {code.co_firstlineno}


def collect(code, into):
    into.setdefault(code.co_name, set()).update(lines_of(code))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            collect(constant, into)


def main():
    with io.open(sys.argv[1], encoding="utf-8") as source:
        code = compile(source.read(), sys.argv[1], "exec")
    found = {}
    collect(code, found)
    print(json.dumps({name: sorted(lines) for name, lines in found.items()}))


main()
