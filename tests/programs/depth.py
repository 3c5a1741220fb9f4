# SPDX-License-Identifier: BSD-2-Clause
"""depth.py DEPTH [objects]: a loop below DEPTH nested calls of one function, or of the __init__ of objects
that each create the next one."""

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
