# SPDX-License-Identifier: BSD-2-Clause
"""many_stacks.py COUNT [LETTERS]: calls COUNT functions in random order, thirty deep, so that nearly every
sample has a new stack.  LETTERS random letters are appended to each function's
name."""

import os
import random
import sys

TEXT = """
def function_%d%s(depth):
    sum(range(200))
    if depth:
        functions[choose()](depth - 1)
    sum(range(200))
"""


def main():
    count, letters = map(int, (sys.argv[1:] + ["0"])[:2])
    scope = {"functions": [], "choose": lambda: random.randrange(count)}
    for number in range(count):
        more = "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(letters))
        exec(compile(TEXT % (number, more), "many_%d.py" % number, "exec"), scope)
        scope["functions"].append(scope["function_%d%s" % (number, more)])
    print("ready")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        scope["functions"][scope["choose"]()](30)


main()
