# SPDX-License-Identifier: BSD-2-Clause
"""reuse.py (elsewhere|alike) BRIEF HEAVY [DEPTH]: creates and drops functions, each at the address of the
last one.

After a line of input `heavy` uses HEAVY seconds of CPU time, then `brief` BRIEF, and so on, below DEPTH
frames.  With `elsewhere` their file names differ, and so do the strings' addresses. With `alike` they differ
only in their names, which share one address.
"""

import sys

from portable import nested, renamed, thread_time

depth = int((sys.argv[4:] or [0])[0])
at = set()
kept = []


def spin(seconds):
    """Ignores jumps of the clock: the virtual machine was paused then, and took no samples."""
    used, before = 0, thread_time()
    while used < seconds:
        now = thread_time()
        used += min(now - before, 0.001)
        before = now


def name_at(letters, address):
    """A name at ADDRESS. Others are kept, so that their memory is not reused."""
    del kept[:]
    for _ in range(5000):
        name = "".join(letters)
        if address in (None, id(name)):
            return name
        kept.append(name)
    sys.exit("no name at the other one's address")


def make(kind, letters, last):
    if kind == "alike" and sys.version_info < (3, 12):  # later code objects have a version
        name = name_at(letters, last)
    else:
        name = "".join(letters)
        kept.append(name)
    filename = name + ".py" if kind == "elsewhere" else "reuse.txt"
    return type(spin)(renamed(spin.__code__, name, filename), globals()), id(name)


def run(kind, letters, last, seconds):
    """LAST is the address of the last function's name. Returns that of this function's."""
    function, last = make(kind, letters, last)
    code = function.__code__  # freed after the function: in 2.7 both have one size
    at.add(id(code))
    if len(at) > 1:
        sys.exit("not at its predecessor's address")
    nested(depth, function, seconds)
    return last


def main():
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    # Tuples of letters: a name that is a constant would be interned, and used for others.
    heavy, brief = [tuple(name) for name in "heavy brief".split()]
    turns = [(heavy, float(sys.argv[3])), (brief, float(sys.argv[2]))]
    last = None
    nested(depth, len, ())  # allocates the memory that calls keep
    while True:
        # One call site: the stacks differ only in the functions themselves.
        for letters, seconds in turns:
            last = run(sys.argv[1], letters, last, seconds)


main()
