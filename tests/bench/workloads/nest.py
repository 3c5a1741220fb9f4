# SPDX-License-Identifier: BSD-2-Clause
"""nest.py SHOWN FRAMES THREADS: short calls, FRAMES deep, beside idle threads."""

import sys

from shown import Shown, ready, start_idle

# The other frames are <module>, main and turn_forever.
OTHER_FRAMES = 3


def short(value):
    return value + 1


def turn_forever(shown):
    while True:
        value = 0
        for _ in range(100):
            value = short(value)
        shown.turn()


def descend(frames, shown):
    if frames > 0:
        return descend(frames - 1, shown)
    return turn_forever(shown)


def main():
    frames, threads = int(sys.argv[2]), int(sys.argv[3])
    start_idle(threads - 1)
    shown = Shown()
    ready()
    descend(frames - OTHER_FRAMES - 1, shown)


main()
