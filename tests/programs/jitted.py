# SPDX-License-Identifier: BSD-2-Clause
"""jitted.py: loops that the JIT, if on, compiles, each called from one line.

Prints whether the JIT is on after "ready".
"""

import json
import sys


def first(number):
    one = two = 1
    for count in range(number):
        one = two + count
        two = one - count
    return one


def second(number):
    total = 0.0
    for count in range(number):
        part = count * 0.5
        total = part + 1.0
    return total


def work():
    first(20000)
    second(20000)


def main():
    work()
    print("ready " + json.dumps(sys._jit.is_enabled()), flush=True)
    while True:
        work()


main()
