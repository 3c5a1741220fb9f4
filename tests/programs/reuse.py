# SPDX-License-Identifier: BSD-2-Clause
"""reuse.py RARE HEAVY: makes functions and throws them away, each at its predecessor's address.

Upon a line of input `heavy` uses HEAVY seconds of CPU time, then `rare` RARE, and so on.
"""

import sys

from portable import renamed, thread_time


at = set()


def spin(seconds):
    """What passes at once, the machine itself was not there for: there are no samples of that."""
    used, before = 0, thread_time()
    while used < seconds:
        now = thread_time()
        used += min(now - before, 0.001)
        before = now


def run(name, seconds):
    code = renamed(spin.__code__, name, name + ".py")
    at.add(id(code))
    if len(at) > 1:
        sys.exit("not at its predecessor's address")
    type(spin)(code, globals())(seconds)


def main():
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    while True:
        run("heavy", float(sys.argv[2]))
        run("rare", float(sys.argv[1]))


main()
