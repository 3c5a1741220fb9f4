# SPDX-License-Identifier: BSD-2-Clause
"""many_threads.py COUNT: so many threads that wait, and two that don't: the main thread, which all
others are newer than, and one in their midst."""

import sys
import threading

from portable import start_thread


def spin():
    while True:
        sum(range(100))


def in_the_midst():
    spin()


def wait(gate):
    gate.acquire()


def main():
    count = int(sys.argv[1])
    gate = threading.Lock()
    gate.acquire()
    threading.stack_size(64 * 1024)
    for _ in range(count // 2):
        start_thread(wait, gate)
    start_thread(in_the_midst)
    for _ in range(count // 2):
        start_thread(wait, gate)
    print("ready")
    sys.stdout.flush()
    spin()


main()
