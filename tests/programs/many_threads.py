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


def start_many(count):
    gate = threading.Lock()
    gate.acquire()
    threading.stack_size(256 * 1024)
    for _ in range(count):
        start_thread(wait, gate)


def main():
    count = int(sys.argv[1])
    start_many(count // 2)
    threading.stack_size(1024 * 1024)  # the JIT of 3.14 takes 90 KiB of it to compile
    start_thread(in_the_midst)
    start_many(count // 2)
    print("ready")
    sys.stdout.flush()
    spin()


main()
