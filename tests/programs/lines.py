# SPDX-License-Identifier: BSD-2-Clause
"""lines.py TOTALS: one function whose lines have known shares of the CPU.

`share:` marks the lines that work, in the order of the numbers in TOTALS. The last
number is that of distant_worker, whose lines are far apart.
"""

import random
import sys

from portable import thread_time
from totals import Totals

# The size of the sums changes with each cycle: equal cycles would run in step with samples of a
# constant period.
SMALLEST, LARGEST = 2500, 7500
size = LARGEST
# How fast the usual time may change per cycle, and how far a cycle may be from it.
NEARER, UNUSUAL = 1.02, 1.5


def unused_before():
    return None


def worker(used):
    start = thread_time()
    total = sum(range(5 * size))  # share: 0
    end = thread_time()
    used[0] += end - start

    for _ in range(2):
        start = thread_time()
        total += sum(range(size))  # share: 1
        end = thread_time()
        used[1] += end - start

    if total < 0:
        total = sum(range(size))
    else:
        start = thread_time()
        total = max(
            1,
            sum(range(2 * size)),  # share: 2
            3,
        )
        end = thread_time()
        used[2] += end - start
    return total


# Steps in lines that take more than one byte of a line table, forward and back.
DISTANT = """def distant_worker(used):
    start = thread_time()
{gap}    total = max(
{gap}        sum(range(size)),
{gap}        sum(range(size)))
    used[3] += thread_time() - start
    return total
"""
GAP = 300

exec(compile(DISTANT.format(gap="\n" * GAP), "distant.py", "exec"))  # noqa: S102


def main():
    totals = Totals(sys.argv[1], 4)
    global size
    total, usual = [0.0] * 4, None
    print("ready")
    while True:
        size = random.randint(SMALLEST, LARGEST)
        used = [0.0] * 4
        worker(used)
        distant_worker(used)
        each = sum(used) / size
        # The clock was corrected by more than the cycle took (see below).
        if each <= 0:
            continue
        # About the median of the cycles so far.
        usual = usual or each
        usual *= NEARER if each > usual else 1 / NEARER
        # In slow cycles the virtual machine was paused: a thread's clock goes on then, without samples.
        # In fast cycles the kernel subtracts such a pause afterwards.
        if usual / UNUSUAL < each < usual * UNUSUAL:
            total = [before + now for before, now in zip(total, used)]
            totals.store(total)


main()
