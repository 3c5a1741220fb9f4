# SPDX-License-Identifier: BSD-2-Clause
"""Finds errors in the stacks of a workload, whose possible calls are known.

A judge takes frames, root first, and whether the profiler has lines.  It returns the error, or
None.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from legal import DeepLegal  # noqa: E402


def names_of(frames):
    return [frame.short for frame in frames]


def is_of(frame, program):
    return os.path.basename(frame.file or "") == program


def recursion(python):
    """Judges deep.py's recursion below recursion.py's own three frames."""
    legal = DeepLegal(python, roots=("descend",))
    callees = {}
    for (caller, _), called in legal.calls.items():
        callees.setdefault(caller, set()).update(called)

    def why_not_names(names):
        for caller, callee in zip(names, names[1:]):
            if callee not in callees.get(caller, ()):
                return "%s does not call %s" % (caller, callee)
        chain = names.count("descend")
        if chain > legal.DEPTH + 1 or (names[-1] != "descend" and chain != legal.DEPTH + 1):
            return "depth %d" % chain
        return None

    def why_not(frames, lines):
        first = next((i for i, frame in enumerate(frames) if is_of(frame, "deep.py")), len(frames))
        above, below = names_of(frames[:first]), frames[first:]
        own = ["<module>", "main", "turn_forever"]
        if above not in ([own] if below else [own, own + ["turn"], own + ["turn", "add"]]):
            return "%s above the recursion" % ", ".join(above)
        if not below:
            return None
        return legal.why_not(below) if lines else why_not_names(names_of(below))

    return why_not


def nest(depth):
    """Judges nest.py, which is always DEPTH frames deep, plus a call or two."""
    def judge(python):
        def why_not(frames, lines):
            names = names_of(frames)
            if names[:2] != ["<module>", "main"]:
                return "%s as root" % names[0]
            bottom = len(names) - names[::-1].index("descend") if "descend" in names else 0
            if set(names[2:bottom]) - {"descend"} or bottom != depth - 1:
                return "depth %d" % bottom
            if names[bottom:] not in (["turn_forever"], ["turn_forever", "short"],
                                      ["turn_forever", "turn"], ["turn_forever", "turn", "add"]):
                return "%s at the bottom" % ", ".join(names[bottom:])
            return None
        return why_not
    return judge


def children(python):
    """Judges spawn.py and child.py, which it starts.  The child's function is compiled from a
    string.  Library frames may be anywhere in between, but no stack has frames of both
    programs."""
    ways = [[("spawn.py", "<module>"), ("spawn.py", "main")]]
    ways += [[("child.py", "<module>"), ("child.py", "main"), ("<string>", name)]
             for name in ("<module>", "child_")]

    def why_not(frames, lines):
        own = [(os.path.basename(frame.file), frame.short.rstrip("0123456789"))
               for frame in frames if is_childs(frame)]
        if not any(own == way[:len(own)] for way in ways):
            return ", ".join(names_of(frames))
        return None

    return why_not


def is_childs(frame):
    """Whether children() knows the frame's possible callers.  It does not know the start and the
    end of an interpreter."""
    return any(is_of(frame, program) for program in ("spawn.py", "child.py", "<string>"))


def calls(program, ways):
    """Judges a program whose own functions call each other in one of WAYS, or in the first part
    of one.  Library frames may be anywhere in between."""
    def judge(python):
        def why_not(frames, lines):
            names = names_of(frame for frame in frames if is_of(frame, program))
            if not any(names == way[:len(names)] for way in ways):
                return ", ".join(names)
            return None
        return why_not
    return judge
