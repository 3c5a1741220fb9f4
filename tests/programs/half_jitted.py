# SPDX-License-Identifier: BSD-2-Clause
"""half_jitted.py: a function with a loop that the JIT, if on, compiles, followed by calls of the interpreter
that take as long.

Prints whether the JIT is on after "ready".
"""

import json
import sys


def work(number):
    total = 0
    for count in range(number):
        total = (total + count) & 0xffff
        total = (total ^ count) + 1
    total += sum(range(2 * number))
    return total + sum(range(2 * number))


def main():
    print("ready " + json.dumps(sys._jit.is_enabled()), flush=True)
    while True:
        work(20000)


main()
