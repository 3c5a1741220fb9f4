# SPDX-License-Identifier: BSD-2-Clause
"""lines.py TOTALS: one function whose lines have known shares of the CPU.

`share:` marks the lines that work, in the order of the numbers in TOTALS; the last
of these belongs to distant_worker, which is far away.
"""

import sys

from portable import thread_time
from totals import Totals

SIZE = 5000


def unused_before():
    return None


def worker(used):
    start = thread_time()
    total = sum(range(5 * SIZE))  # share: 0
    end = thread_time()
    used[0] += end - start

    for _ in range(2):
        start = thread_time()
        total += sum(range(SIZE))  # share: 1
        end = thread_time()
        used[1] += end - start

    if total < 0:
        total = sum(range(SIZE))
    else:
        start = thread_time()
        total = max(
            1,
            sum(range(2 * SIZE)),  # share: 2
            3,
        )
        end = thread_time()
        used[2] += end - start
    return total


# Steps in lines that take more than one byte of a line table, forward and back.
DISTANT = """def distant_worker(used):
    start = thread_time()
{gap}    total = max(
{gap}        sum(range(SIZE)),
{gap}        sum(range(SIZE)))
    used[3] += thread_time() - start
    return total
"""
GAP = 300

exec(compile(DISTANT.format(gap="\n" * GAP), "distant.py", "exec"))  # noqa: S102


def main():
    totals = Totals(sys.argv[1], 4)
    used = [0.0] * 4
    print("ready")
    while True:
        worker(used)
        distant_worker(used)
        totals.store(used)


main()
