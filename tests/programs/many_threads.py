# SPDX-License-Identifier: BSD-2-Clause
"""many_threads.py COUNT [fork]: COUNT threads that wait, and two that are busy: the main thread, the oldest,
and one started in the middle of the others.  With `fork` all are in a forked child. Prints the
PID."""

import ctypes
import os
import signal
import sys
import threading

from portable import start_thread

PR_SET_PDEATHSIG = 1


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
    print("ready %d" % os.getpid())
    sys.stdout.flush()
    spin()


def fork():
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if sys.argv[2:] == ["fork"]:
    fork()
main()
