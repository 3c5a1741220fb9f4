# SPDX-License-Identifier: BSD-2-Clause
"""Two threads pass a byte back and forth as fast as they can. Each line of input prints trips and CPU seconds.
tests/e2e/legal.py reads the `calls:` marks."""

import os
import sys

try:
    import _thread
except ImportError:
    import thread as _thread  # 2.7

TRIPS = [0]


def answer(source, sink):
    while True:
        os.write(sink, os.read(source, 1))


def ask(source, sink):
    while True:
        os.write(sink, b"x")
        os.read(source, 1)
        TRIPS[0] += 1


def main():
    there, back = os.pipe(), os.pipe()
    for function, ends in (answer, (there[0], back[1])), (ask, (back[0], there[1])):
        _thread.start_new_thread(function, ends)
    print("ready")
    sys.stdout.flush()
    for _ in iter(sys.stdin.readline, ""):  # calls: library
        print("%d %f" % (TRIPS[0], sum(os.times()[:2])))
        sys.stdout.flush()


main()  # calls: main
