# SPDX-License-Identifier: BSD-2-Clause
"""made_state.py LIBRARY: a thread runs Python in a state that the first thread has made for it.

LIBRARY is made_state.c's.
"""

import ctypes
import sys


def maker_leaf():
    return sum(range(1000))


def maker():
    while True:
        maker_leaf()


def runner_leaf():
    return sum(range(1000))


def runner():
    while True:
        runner_leaf()


def main():
    assert ctypes.PyDLL(sys.argv[1]).run_elsewhere(b"import __main__; __main__.runner()") == 0
    print("ready")
    sys.stdout.flush()
    maker()


main()
