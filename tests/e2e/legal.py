# SPDX-License-Identifier: BSD-2-Clause
"""The stacks that a program of tests/programs can have, derived from its `calls:` marks.

The mark of a line names the functions that the line calls.  A condition may follow a name: "(2.7)",
"(<3.12)", "(>=3.8)" or "(3.0-3.11)" restricts the versions, and "(by <genexpr>)" names the function
inside the line that makes the call.  A comma between conditions means "or".  A function whose first line
has `called: anywhere` may follow any frame; one with `called: library` may follow any frame of another
file.  The name `library` in a mark stands for every function of other files.  The interpreter itself
reports which functions a file has, and their lines; this includes the standard library.
"""

import ast
import json
import os
import re
import subprocess

import pytest

from conftest import wait_for, whole_at_least
from pythons import JIT

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs")
MARK = re.compile(r"([\w<>]+)(?: \((.*?)\))?")


BRIEF = 0.5


def briefly_and_long(seconds=2, part="truth"):
    """Gives a test the parameter `cpu`, the CPU time to profile: BRIEF in `make test`, SECONDS in a part of
    `make prove`.  Only the long run checks statistics."""
    long = pytest.param(seconds, marks=pytest.mark.prove(part), id="long")
    return pytest.mark.parametrize("cpu", [pytest.param(BRIEF, id="brief"), long])


def check_whole(measured, what, whole, samples):
    """At least 99.9 % of the samples have their whole stack."""
    measured("whole stacks: " + what, "%.3f %%" % (100 * whole / samples), ">= 99.9 %")
    assert whole >= whole_at_least(samples)


def runs_until(profile, condition, *arguments, **options):
    """Runs the profiler repeatedly until CONDITION(runs) is true.  Returns all runs."""
    runs = []

    def run_once_more():
        runs.append(profile(*arguments, **options))
        return condition(runs)
    wait_for(run_once_more)
    return runs


def applies(version, condition):
    """Whether a condition like "<3.12" is true of a version."""
    comparison, first, last = re.fullmatch(r"(<|>=|)([\d.]+)(?:-([\d.]+))?", condition).groups()
    first, last = (tuple(map(int, text.split("."))) for text in (first, last or first))
    if comparison == "<":
        return version < first
    return first <= version and (comparison == ">=" or version <= last)


def owners(source):
    """{line: the function or class it is in}"""
    owner = dict.fromkeys(range(1, source.count("\n") + 2), "<module>")
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds):
            # The first line of a class belongs to the enclosing function, which calls the class body.
            first = node.lineno + isinstance(node, ast.ClassDef)
            owner.update(dict.fromkeys(range(first, node.end_lineno + 1), node.name))
    return owner


class KnownLines:
    """The lines of every function, as reported by one Python."""

    def __init__(self, python):
        self.python = python
        self.files = {}

    def learn(self, files):
        """Asks the interpreter about new FILES, which are full names as in code objects."""
        new = sorted(set(files) - set(self.files))
        if new:
            program = os.path.join(PROGRAMS, "legal_lines.py")
            answer = subprocess.run([*self.python.command, program, *new], stdout=subprocess.PIPE,
                                    check=True)
            for file, functions in json.loads(answer.stdout).items():
                self.files[file] = {name: set(lines) for name, lines in functions.items()}

    def has(self, frame, file=None):
        """Whether a function with the frame's name has the frame's line, or an instruction without a line."""
        file = file or frame.file
        self.learn([file])
        name = frame.name if self.python.version >= (3, 11) else frame.short
        return (frame.line or 0) in self.files[file].get(name, ())


class Legal:
    """The legal stacks of PROGRAM under one Python.  The outermost frame must be one of ROOTS.

    Frames of other files than PROGRAM need their full file names."""

    def __init__(self, python, program, roots=("<module>",)):
        self.roots = roots
        self.jit = python.kind == JIT
        path = os.path.join(PROGRAMS, program)
        self.known = KnownLines(python)
        self.path = path
        self.file = os.path.basename(path)
        self.calls = {}
        self.called = {"anywhere": set(), "library": set()}
        with open(path, encoding="utf-8") as file:
            source = file.read()
        owner = owners(source)
        for number, line in enumerate(source.splitlines(), 1):
            self.called.get(line.partition("# called: ")[2], set()).add(owner[number])
            self.add(python.version[:2], owner[number], number, line.partition("# calls: ")[2])

    def add(self, version, owner, number, marks):
        for name, conditions in MARK.findall(marks):
            for condition in conditions.split(", "):
                if condition.startswith("by "):
                    self.calls.setdefault((condition[3:], number), set()).add(name)
                elif not condition or applies(version, condition):
                    self.calls.setdefault((owner, number), set()).add(name)

    def is_own(self, frame):
        return os.path.basename(frame.file or "") == self.file

    def may_call(self, caller, callee):
        name = callee.short if self.is_own(callee) else "library"
        if name in self.called["anywhere"]:
            return True
        if not self.is_own(caller):
            return name == "library" or name in self.called["library"]
        return name in self.calls.get((caller.short, caller.line), ())

    def has_line(self, frame, callee):
        """Whether the frame's line belongs to its function.  The line may be None for some instructions and
        for jitted code.  A caller in the program has None only if a signal or the like interrupted it."""
        if not self.is_own(frame):
            return self.known.has(frame) or (frame.line is None and self.jit and not callee)
        if frame.line is None and callee and callee.short not in self.called["anywhere"]:
            return False
        if frame.line is None and self.jit and not callee:
            return True
        return self.known.has(frame, self.path)

    def why_not(self, frames):
        """What is wrong with a stack, root first; None if it is legal."""
        if frames[0].short not in self.roots:
            return "%s as root" % frames[0]
        for caller, callee in zip(frames, frames[1:]):
            if not self.may_call(caller, callee):
                return "%s does not call %s" % (caller, callee)
        for frame, callee in zip(frames, frames[1:] + [None]):
            if not self.has_line(frame, callee):
                return "%s has no such line" % frame
        return None

    def judge(self, run, wrong, below=0):
        """Adds the illegal stacks of a run to WRONG, {reason: samples}, after skipping BELOW outermost frames
        of each.  Returns the names in all stacks."""
        seen = set()
        for frames, count in run.stacks:
            # The profiler reported that this stack is incomplete.
            if frames[-1].file is None or frames[below].file is None:
                continue
            seen.update(frame.short for frame in frames)
            reason = self.why_not(frames[below:])
            if reason:
                wrong[reason] = wrong.get(reason, 0) + count
        return seen


class DeepLegal(Legal):
    """The legal stacks of deep.py.  Its recursion calls itself from one line at depth 0, from another at odd
    depths and from a third at even depths; no stack is deeper than the recursion."""

    DEPTH = 50

    def __init__(self, python, **options):
        super().__init__(python, "deep.py", **options)

    def why_not(self, frames):
        return super().why_not(frames) or self.why_not_recursion(frames)

    def why_not_recursion(self, frames):
        chain = [frame for frame in frames if frame.short == "descend"]
        if any(frame.short == "bottom" for frame in frames) and len(chain) != self.DEPTH + 1:
            return "bottom at depth %d" % len(chain)
        if len(chain) > self.DEPTH + 1:
            return "depth %d" % len(chain)
        callers = chain[:-1] if frames[-1].short == "descend" else chain
        at_zero, odd, even = sorted(line for name, line in self.calls if name == "descend")
        for position, frame in enumerate(callers):
            depth = self.DEPTH - position
            if frame.line != (at_zero if depth == 0 else odd if depth % 2 else even):
                return "depth %d calls from line %s" % (depth, frame.line)
        return None
