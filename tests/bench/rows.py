# SPDX-License-Identifier: BSD-2-Clause
"""The rows on which the profilers are compared."""

import collections
import os

import judge
from processes import PROGRAMS, WORKLOADS

# judge: Python -> a judge of judge.py; roots: the outermost frames of whole stacks; functions:
# those whose CPU time the workload shows; turns: whether its turns measure its speed; rounds: runs
# of each profiler, each of `seconds`; fewer than ROUNDS give no interval of 95 %.
Row = collections.namedtuple("Row", "key title path arguments rate pinned judge roots functions "
                             "turns seconds rounds")

ROUNDS = 6


def row(key, title, program, rate, judged, arguments=(), folder=WORKLOADS, pinned=True,
        roots=("<module>",), functions=(), turns=True, seconds=1, rounds=ROUNDS):
    return Row(key, title, os.path.join(folder, program), arguments, rate, pinned, judged,
               roots, functions, turns, seconds, rounds)


SHARES = ("alpha", "beta", "gamma", "delta", "epsilon")

ROWS = (
    row("recursion", "Recursion 50 deep, short calls, 1,000 Hz", "recursion.py", 1000,
        judge.recursion),
    row("recursion-100", "Recursion 50 deep, short calls, 100 Hz", "recursion.py", 100,
        judge.recursion),
    row("shares", "Five functions with known shares, driven by a timer of 10 ms, 1,000 Hz",
        "shares.py", 1000,
        judge.calls("shares.py", [["<module>", "main", "cycle", name] for name in SHARES]),
        arguments=(3.7, "timer"), folder=PROGRAMS, functions=SHARES, turns=False, seconds=4,
        rounds=2),
    row("threads", "160 threads, 159 of them asleep, 49 deep, 100 Hz", "nest.py", 100,
        judge.nest(49), arguments=(49, 160), roots=("<module>", "_bootstrap")),
    row("released", "C code without the GIL, and Python, by turns, 1,000 Hz", "released.py", 1000,
        judge.calls("released.py", [["<module>", "main", "compute"],
                                    ["<module>", "main", "hash_password"]]),
        functions=("compute", "hash_password")),
    row("depth", "900 frames deep, 100 Hz", "nest.py", 100, judge.nest(900), arguments=(900, 1)),
    row("asyncio", "An asyncio server under load, 1,000 Hz", "server.py", 1000,
        judge.calls("server.py", [["<module>", "handle", "answer", "digest"],
                                  ["<module>", "serve"]])),
    row("zlib", "Three threads of Python and zlib, 1,000 Hz", "compress.py", 1000,
        judge.calls("compress.py", [
            [*root, "work_forever", *leaf]
            for root in (["<module>", "main"], [])
            for leaf in (["make_text", "<listcomp>"], ["<lambda>", "compress_text"])]),
        pinned=False, roots=("<module>", "_bootstrap"), functions=("make_text", "compress_text")),
)

# Each round has this many processes.  A turn is a process that ends.
CHILD_SECONDS = 0.05
CHILDREN = row("children", "%d times 40 processes of 50 ms, two at a time, 100 Hz" % ROUNDS, "spawn.py",
               100, judge.children, arguments=(40, CHILD_SECONDS), pinned=False)
