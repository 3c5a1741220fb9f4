# SPDX-License-Identifier: BSD-2-Clause
"""shares.py TOTALS CYCLE_MS free|timer: five functions with known shares of the CPU.

A cycle gives each function its part of CYCLE_MS of this thread's CPU time.
`free` runs cycle after cycle, `timer` one at each tick of 10 ms.  TOTALS gets
the CPU time that each function really used, by the thread's clock.
"""

import sys
import time

from portable import monotonic, thread_time
from totals import Totals

SHARES = (0.40, 0.25, 0.20, 0.10, 0.05)
TICK = 0.010


def alpha(until):
    while thread_time() < until:
        pass


def beta(until):
    while thread_time() < until:
        pass


def gamma(until):
    while thread_time() < until:
        pass


def delta(until):
    while thread_time() < until:
        pass


def epsilon(until):
    while thread_time() < until:
        pass


FUNCTIONS = (alpha, beta, gamma, delta, epsilon)


def cycle(length, used):
    for index, function in enumerate(FUNCTIONS):
        start = thread_time()
        function(start + length * SHARES[index])
        used[index] += thread_time() - start


def main():
    totals = Totals(sys.argv[1], len(SHARES))
    length = float(sys.argv[2]) / 1000
    used = [0.0] * len(SHARES)
    print("ready")
    tick = monotonic()
    while True:
        cycle(length, used)
        totals.store(used)
        if sys.argv[3] == "timer":
            tick = max(tick + TICK, monotonic())
            time.sleep(max(0, tick - monotonic()))


main()
