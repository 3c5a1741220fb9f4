# SPDX-License-Identifier: BSD-2-Clause
"""Two functions whose lines the program has numbered itself: below.py's -8, and above.py's 92.

Each is of one line, as later versions want of those below 1.
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
