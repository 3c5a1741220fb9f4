# SPDX-License-Identifier: BSD-2-Clause
"""touch_pages.py PAGES DEPTH: touches PAGES new pages below DEPTH frames for each line of input."""

import mmap
import sys

PAGES, DEPTH = int(sys.argv[1]), int(sys.argv[2])


def touch_here():
    memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE)
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at:at + 1] = b"x"
    memory.close()


def below(depth):
    if depth:
        below(depth - 1)
    else:
        touch_here()


print("ready")
sys.stdout.flush()
for line in iter(sys.stdin.readline, ""):
    below(DEPTH)
    print("done")
    sys.stdout.flush()
