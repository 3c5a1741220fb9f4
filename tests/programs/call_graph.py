# SPDX-License-Identifier: BSD-2-Clause
"""call_graph.py SEED: functions, generators and coroutines that call each other at random. The same SEED gives
the same calls on every version. Most calls pass keywords, so that they avoid the eval loop's fast path, and
each leaves a different amount on the stacks. edges(SEED) returns the callees of each function.
"""

import sys

COUNT = 50
CALLED_AT_MOST = 3
PLAIN, GENERATOR, COROUTINE = "plain", "generator", "coroutine"
KINDS = (PLAIN, PLAIN, PLAIN, GENERATOR, GENERATOR, COROUTINE)


class Chance:
    """Random numbers that are the same in every version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        return (self.state >> 33) % limit

    def one_of(self, choices):
        return choices[self.below(len(choices))]


class Pause:
    def __await__(self):
        yield


def drive(coroutine):
    try:
        while True:
            coroutine.send(None)
    except StopIteration:
        pass


def call(chance, caller, callee, kinds):
    """The source line with which CALLER calls CALLEE."""
    made = "f%d(z=%d)" % (callee, callee)
    if kinds[callee] == PLAIN:
        return made
    if kinds[callee] == COROUTINE:
        return "await " + made if kinds[caller] == COROUTINE else "drive(%s)" % made
    ways = ["for _ in %s: pass", "list(%s)", "sum(%s)"]
    if kinds[caller] == GENERATOR:
        ways.append("yield from %s")
    return chance.one_of(ways) % made


def function(chance, number, kinds, called):
    """The source of function NUMBER."""
    kind = kinds[number]
    lines = ["%sdef f%d(x=0, *, z=1):" % ("async " if kind == COROUTINE else "", number)]
    lines += ["    v%d = x" % i for i in range(chance.below(8))]
    lines.append("    if x: print(%s)" % ", ".join("1" * (2 + chance.below(28))))
    for callee in called:
        if kind != PLAIN and chance.below(2):
            lines.append("    yield 1" if kind == GENERATOR else "    await Pause()")
        lines.append("    " + call(chance, number, callee, kinds))
    lines.append("    yield 2" if kind == GENERATOR else "    pass")
    return "\n".join(lines) + "\n"


def graph(seed):
    """(kinds, callees, sources) of all functions."""
    chance = Chance(seed)
    kinds, edges, sources = [], [], []
    for number in range(COUNT):
        kinds.append(chance.one_of(KINDS))
        called = [callee for callee in range(number) if chance.below(8) == 0]
        edges.append(called[-CALLED_AT_MOST:])
        sources.append(function(chance, number, kinds, edges[number]))
    return kinds, edges, sources


def edges(seed):
    return graph(seed)[1]


def main():
    kinds, _, sources = graph(int(sys.argv[1]))
    scope = {"drive": drive, "Pause": Pause}
    exec(compile("".join(sources), __file__, "exec"), scope)
    uses = {PLAIN: lambda made: made, GENERATOR: list, COROUTINE: drive}
    print("ready", flush=True)
    while True:
        for number, kind in enumerate(kinds):
            uses[kind](scope["f%d" % number](z=0))


if __name__ == "__main__":
    main()
