# SPDX-License-Identifier: BSD-2-Clause
"""work.py COUNTER FRAMES THREADS: counts its turns, FRAMES deep, beside idle threads.

The turns go into the file COUNTER, which the bench reads while this runs.
"""

import os
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from portable import start_thread  # noqa: E402
from totals import map_file  # noqa: E402

# <module>, main and turn_forever stand beside the recursion's own frames.
OTHER_FRAMES = 3


def short(value):
    return value + 1


def turn_forever(counter):
    turns = 0
    while True:
        value = 0
        for _ in range(100):
            value = short(value)
        turns += 1
        struct.pack_into("Q", counter, 0, turns)


def descend(frames, counter):
    if frames > 0:
        return descend(frames - 1, counter)
    return turn_forever(counter)


def main():
    frames, threads = int(sys.argv[2]), int(sys.argv[3])
    never = threading.Event()
    for _ in range(threads - 1):
        start_thread(never.wait)
    counter = map_file(sys.argv[1], 8)
    print("ready")
    sys.stdout.flush()
    descend(frames - OTHER_FRAMES - 1, counter)


main()
