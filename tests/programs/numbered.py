# SPDX-License-Identifier: BSD-2-Clause
"""Two functions with line numbers set by the program: -8 in below.py, and 92 in above.py.

Each function has one line: later versions require that for lines below 1.
"""

import ast
import sys

COUNT = 5000


def make(name, line):
    tree = ast.parse("made = lambda: sum(range(COUNT))")
    ast.increment_lineno(tree, line - 1)
    names = {"COUNT": COUNT}
    exec(compile(tree, name + ".py", "exec"), names)
    return names["made"]


def main():
    below, above = make("below", -8), make("above", 92)
    print("ready")
    sys.stdout.flush()
    while True:
        below()
        above()


main()
