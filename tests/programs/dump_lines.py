# SPDX-License-Identifier: BSD-2-Clause
"""Writes the line tables of this interpreter's standard library, with the interpreter's own lines.

line_check.c describes the format. The library's tests (folders named test or tests, a third of all code)
would add nothing, and are left out.
"""

import array
import dis
import os
import struct
import sys
import types
import warnings

# Bytes of an instruction without its caches. Before 3.6 instructions have one or three bytes.
UNIT = 2 if sys.version_info >= (3, 6) else 1
SKIPPED_FOLDERS = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"}


def expected_lines(code):
    """The interpreter's line of each code unit, or 0 for none."""
    lines = array.array("I", [0]) * (len(code.co_code) // UNIT)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for unit in range(start // UNIT, end // UNIT):
                lines[unit] = line or 0
        return lines
    starts = dict(dis.findlinestarts(code))
    line = code.co_firstlineno
    for unit in range(len(lines)):
        line = starts.get(unit * UNIT, line)
        lines[unit] = line
    return lines


def line_table(code):
    return code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab


def dump(code, out):
    table = line_table(code)
    lines = expected_lines(code)
    out.write(struct.pack("=III", code.co_firstlineno, len(table), len(lines)))
    out.write(table)
    out.write(lines.tobytes() if hasattr(lines, "tobytes") else lines.tostring())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            dump(constant, out)


def sources():
    for folder, folders, files in os.walk(os.path.dirname(os.__file__)):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(folder, name)


def main():
    warnings.simplefilter("ignore")
    out = getattr(sys.stdout, "buffer", sys.stdout)
    out.write(struct.pack("=I", sys.hexversion))
    for path in sources():
        with open(path, "rb") as file:
            source = file.read()
        try:
            code = compile(source, path, "exec")
        except (SyntaxError, TypeError, ValueError):  # a deliberately bad one
            continue
        dump(code, out)


main()
