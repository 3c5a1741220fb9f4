# SPDX-License-Identifier: BSD-2-Clause
"""jitted_calls.py LIBRARY: a loop that the JIT, if on, compiles. It is called in a key function of sorted(), which
is called back from native_chain.c's library.

Prints whether the JIT is on after "ready".
"""

import ctypes
import json
import sys

library = ctypes.PyDLL(sys.argv[1])
library.chain_enter.argtypes = library.chain_pass.argtypes = [ctypes.py_object]


def loop(number):
    total = 0
    for count in range(number):
        total = total + count ^ 3
    return total


def key_of(value):
    return loop(20000 + value)


def inner():
    sorted((3, 1, 2), key=key_of)


def middle():
    library.chain_pass(inner)


def work():
    library.chain_enter(middle)


def main():
    work()
    print("ready " + json.dumps(sys._jit.is_enabled()), flush=True)
    while True:
        work()


main()
