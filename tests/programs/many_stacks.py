# SPDX-License-Identifier: BSD-2-Clause
"""many_stacks.py COUNT: calls so many functions in an order that is never the same twice,
some thirty deep, so that nearly each sample is a stack of its own."""

import os
import random
import sys

TEXT = """
def function_%d(depth):
    sum(range(200))
    if depth:
        functions[choose()](depth - 1)
    sum(range(200))
"""


def main():
    count = int(sys.argv[1])
    scope = {"functions": [], "choose": lambda: random.randrange(count)}
    for number in range(count):
        exec(compile(TEXT % number, "many_%d.py" % number, "exec"), scope)
        scope["functions"].append(scope["function_%d" % number])
    print("ready")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        scope["functions"][scope["choose"]()](30)


main()
