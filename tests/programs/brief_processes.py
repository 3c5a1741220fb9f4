# SPDX-License-Identifier: BSD-2-Clause
"""brief_processes.py COUNT: forks COUNT children that use a millisecond of CPU time each, a few at a time."""

import os
import sys

from portable import thread_time

AT_ONCE = 8


def in_child():
    until = thread_time() + 0.001
    while thread_time() < until:
        pass


def main():
    for number in range(int(sys.argv[1])):
        if number >= AT_ONCE:
            os.wait()
        if not os.fork():
            in_child()
            os._exit(0)


main()
