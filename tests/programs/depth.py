# SPDX-License-Identifier: BSD-2-Clause
"""depth.py DEPTH: a loop at the bottom of so many calls of one function."""

import sys
import threading


def bottom():
    print("ready")
    while True:
        sum(range(1000))


def descend(depth):
    if depth == 1:
        bottom()
    descend(depth - 1)


def main():
    depth = int(sys.argv[1])
    sys.setrecursionlimit(depth + 1000)
    threading.stack_size(256 << 20)
    threading.Thread(target=descend, args=(depth,)).start()


main()
