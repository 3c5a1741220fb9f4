# SPDX-License-Identifier: BSD-2-Clause
"""child.py NUMBER SECONDS: works for SECONDS of CPU time in a function named after the number."""

import sys
from time import thread_time

SOURCE = """
def child_%s(until):
    while thread_time() < until:
        pass
"""


def main():
    number, seconds = sys.argv[1], float(sys.argv[2])
    scope = {"thread_time": thread_time}
    exec(SOURCE % number, scope)  # noqa: S102
    scope["child_" + number](thread_time() + seconds)


main()
