# SPDX-License-Identifier: BSD-2-Clause
"""clock.py SHOWN: runs another function in each hundredth of a second, beginning at a given moment.

The bench writes that moment, by the monotonic clock, in place of the turns.  A profile then shows
when its first sample was.
"""

import time

from shown import Shown, ready

SLOT = 0.010
SLOTS = 1000

SOURCE = """
def slot_%d(until):
    while clock() < until:
        pass
"""


def make_slots():
    scope = {"clock": time.monotonic}
    for number in range(SLOTS):
        exec(SOURCE % number, scope)  # noqa: S102
    return [scope["slot_%d" % number] for number in range(SLOTS)]


def main():
    shown = Shown()
    slots = make_slots()
    last = 0.0
    ready()
    while True:
        start = shown.values[0]
        if start == last:
            continue
        last = start
        for number, slot in enumerate(slots):
            if shown.values[0] != start:
                break
            slot(start + (number + 1) * SLOT)


main()
