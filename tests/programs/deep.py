# SPDX-License-Identifier: BSD-2-Clause
"""deep.py: a program with a known set of legal stacks.

Two threads recurse 50 deep, from two lines in turn, and make short calls of
every kind at the bottom.  tests/e2e/legal.py reads the `calls:` marks.
"""

import sys

try:
    import _thread
except ImportError:
    import thread as _thread  # 2.7

DEPTH = 50
PAIR = (1, 2)


def short(value):
    return value + 1


def middle(value):
    result = short(value)  # calls: short
    result += short(value)  # calls: short
    return result


def generate(count):
    for value in range(count):
        yield middle(value)  # calls: middle


def order(value):
    return -value


class Thing(object):
    def __init__(self, value):
        self.value = short(value)  # calls: short

    def __len__(self):
        return 3


def bottom():
    total = 0
    for value in range(20):
        total += short(value)  # calls: short
        total += middle(  # calls: middle (>=3.8)
            value  # calls: middle (<3.8)
        ) + 1
        total += sum(generate(3))  # calls: generate
        total += sorted((3, 1, 2), key=order)[0]  # calls: order
        total += Thing(value).value  # calls: __init__
        total += len(Thing(value))  # calls: __init__, __len__
        [short(i) for i in PAIR]  # calls: <listcomp> (3.0-3.11), short (by <listcomp>, 2.7, >=3.12)
        try:
            total += middle(value)  # calls: middle
        finally:
            total -= short(value)  # calls: short
    return total


def descend(depth):
    if depth == 0:
        return bottom()  # calls: bottom
    if depth % 2:
        return descend(depth - 1)  # calls: descend
    result = descend(depth - 1)  # calls: descend
    return result


def work():
    while True:
        descend(DEPTH)  # calls: descend


if __name__ == "__main__":
    _thread.start_new_thread(work, ())
    print("ready")
    sys.stdout.flush()
    work()  # calls: work
