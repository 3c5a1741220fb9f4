# SPDX-License-Identifier: BSD-2-Clause
"""busy.py: a loop that never ends, two functions deep."""

import sys


def leaf():
    return sum(range(1000))


def spin():
    while True:
        leaf()


print("ready")
sys.stdout.flush()
spin()
