# SPDX-License-Identifier: BSD-2-Clause
"""For each line of input: naps in nap_here, and prints how many nanoseconds it was off the CPU by its own clocks."""

import select
import sys
import time

NAPS = 20
NAP = 0.05

clock = getattr(time, "monotonic", time.time)
used = getattr(time, "process_time", None) or time.clock  # 2.7


def nap_here():
    begin, busy = clock(), used()
    select.select([], [], [], NAP)
    return (clock() - begin) - (used() - busy)


print("ready")
sys.stdout.flush()
for _ in iter(sys.stdin.readline, ""):
    print("%d" % (1e9 * sum(nap_here() for _ in range(NAPS))))
    sys.stdout.flush()
