# SPDX-License-Identifier: BSD-2-Clause
"""short_lived.py: modules that are loaded, run once and dropped, one after another.

Module N is the file short_N.py. It defines function_N in line 10 N + 1, which calls work in line
10 N + 5, and calls function_N in line 10 N + 6.
"""

import marshal
import os
import sys

MODULES = 5
TEXT = "def function_%d(work):\n    one = 1\n\n\n    return work(one)\nfunction_%d(work)\n"


def work(_):
    return sum(range(20))


def make(number):
    text = "\n" * (10 * number) + TEXT % (number, number)
    return marshal.dumps(compile(text, "short_%d.py" % number, "exec"))


def run(module):
    exec(marshal.loads(module), {"work": work})


def main():
    modules = [make(number) for number in range(MODULES)]
    print("ready")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        for module in modules:
            run(module)


main()
