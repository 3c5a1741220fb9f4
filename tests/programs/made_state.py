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
    # What the library is linked with may be newer than this Python's C library.
    start_thread = ctypes.CDLL(None).pthread_create
    library = ctypes.PyDLL(sys.argv[1])
    assert library.run_elsewhere(start_thread, b"import __main__; __main__.runner()") == 0
    print("ready")
    sys.stdout.flush()
    maker()


main()
