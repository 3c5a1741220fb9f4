# SPDX-License-Identifier: BSD-2-Clause
"""reuse.py (elsewhere|alike) BRIEF HEAVY [DEPTH]: makes functions and throws them away, each at its
predecessor's address.

Upon a line of input `heavy` uses HEAVY seconds of CPU time, then `brief` BRIEF, and so on, called from
DEPTH frames.  They have files of their own, which lie elsewhere, or are alike but for their names, which
have one address.
"""

import sys

from portable import nested, renamed, thread_time

depth = int((sys.argv[4:] or [0])[0])
at = set()
kept = []


def spin(seconds):
    """What passes at once, the machine itself was not there for: there are no samples of that."""
    used, before = 0, thread_time()
    while used < seconds:
        now = thread_time()
        used += min(now - before, 0.001)
        before = now


def name_at(letters, address):
    """One that is there; what lies elsewhere stays, so as not to be used again."""
    del kept[:]
    for _ in range(5000):
        name = "".join(letters)
        if address in (None, id(name)):
            return name
        kept.append(name)
    sys.exit("no name at the other one's address")


def make(kind, letters, last):
    if kind == "alike" and sys.version_info < (3, 12):  # later ones have a version
        name = name_at(letters, last)
    else:
        name = "".join(letters)
        kept.append(name)
    filename = name + ".py" if kind == "elsewhere" else "reuse.txt"
    return type(spin)(renamed(spin.__code__, name, filename), globals()), id(name)


def run(kind, letters, last, seconds):
    """LAST is where the one before had its name; returns where this one has."""
    function, last = make(kind, letters, last)
    code = function.__code__  # is freed after the function: in 2.7 both are as large
    at.add(id(code))
    if len(at) > 1:
        sys.exit("not at its predecessor's address")
    nested(depth, function, seconds)
    return last


def main():
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    # In one constant, for a name that is one is interned, and used in place of another.
    heavy, brief = [tuple(name) for name in "heavy brief".split()]
    turns = [(heavy, float(sys.argv[3])), (brief, float(sys.argv[2]))]
    last = None
    nested(depth, len, ())  # so that what the calls keep is there already
    while True:
        # From one place: nothing in the stack tells them apart but what they are.
        for letters, seconds in turns:
            last = run(sys.argv[1], letters, last, seconds)


main()
