# SPDX-License-Identifier: BSD-2-Clause
"""recursion.py SHOWN: the recursion of tests/programs/deep.py.  All its possible stacks are
known."""

from shown import Shown, ready

import deep


def turn_forever(shown):
    while True:
        deep.descend(deep.DEPTH)
        shown.turn()


def main():
    shown = Shown()
    ready()
    turn_forever(shown)


main()
