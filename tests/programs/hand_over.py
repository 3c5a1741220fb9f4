# SPDX-License-Identifier: BSD-2-Clause
"""hand_over.py: runs thousands of functions for 0.5 ms each, so that the profiler knows many. Then `former`
runs for 3 ms, and `latter` for 0.8 s at the same address, called from the same line.

The stacks are so deep that at 9,999 Hz BPF does not tell code objects apart."""

import sys

from portable import nested, thread_time

TEXT = """
def %s(end, clock):
    while clock() < end:
        pass
"""
COUNT = 6000
TRIES = 5000
DEPTH = 30


def make(name):
    names = {}
    exec(compile(TEXT % name, name + ".py", "exec"), names)
    return names[name]


def make_at(name, address):
    """A function with its code object at ADDRESS. Others are kept, so that their memory is not reused."""
    kept = []
    for _ in range(TRIES):
        function = make(name)
        if address in (None, id(function.__code__)):
            return function
        kept.append(function)
    sys.exit("no function at the other one's address")


def main():
    many = [make("many_%d" % number) for number in range(COUNT)]
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    for function in many:
        nested(DEPTH, function, thread_time() + 0.0005, thread_time)
    address = None
    for name, seconds in ("former", 0.003), ("latter", 0.8):
        function = make_at(name, address)
        address = id(function.__code__)
        nested(DEPTH, function, thread_time() + seconds, thread_time)
        del function


main()
