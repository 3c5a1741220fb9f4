# SPDX-License-Identifier: BSD-2-Clause
"""depth.py DEPTH [objects]: a loop at the bottom of so many calls of one function, or of objects that each
make the next one as they are made."""

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


class Descent(object):
    def __init__(self, depth):
        if depth == 1:
            bottom()
        Descent(depth - 1)


def main():
    depth = int(sys.argv[1])
    sys.setrecursionlimit(depth + 1000)
    threading.stack_size(256 << 20)
    threading.Thread(target=Descent if sys.argv[2:] else descend, args=(depth,)).start()


main()
