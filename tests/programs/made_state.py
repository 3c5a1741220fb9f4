# SPDX-License-Identifier: BSD-2-Clause
"""made_state.py LIBRARY: a thread runs Python in a state that the first thread has created for it.

LIBRARY is built from made_state.c.
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
    # The library may be linked with a newer C library than this Python's.
    start_thread = ctypes.CDLL(None).pthread_create
    library = ctypes.PyDLL(sys.argv[1])
    assert library.run_elsewhere(start_thread, b"import __main__; __main__.runner()") == 0
    print("ready")
    sys.stdout.flush()
    maker()


main()
