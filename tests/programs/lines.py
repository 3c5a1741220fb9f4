# SPDX-License-Identifier: BSD-2-Clause
"""lines.py TOTALS: one function whose lines have known shares of the CPU.

`share:` marks the lines that work, in the order of the numbers in TOTALS; the last
of these belongs to distant_worker, which is far away.
"""

import random
import sys

from portable import thread_time
from totals import Totals

# How much is summed up, another number each time: with cycles that are alike, samples would be in
# step for as long as their period is kept.
SMALLEST, LARGEST = 2500, 7500
size = LARGEST
# How fast what is usual may change, with each cycle; and how far from that it may be.
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
        # More was taken from the clock than it took (below).
        if each <= 0:
            continue
        # The median of what it took so far, or near it.
        usual = usual or each
        usual *= NEARER if each > usual else 1 / NEARER
        # In what takes longer the machine itself was not there: a thread's clock goes on then, and there
        # are no samples.  In what takes less, that time is taken from it afterwards.
        if usual / UNUSUAL < each < usual * UNUSUAL:
            total = [before + now for before, now in zip(total, used)]
            totals.store(total)


main()
