# SPDX-License-Identifier: BSD-2-Clause
"""Threads that go through several interpreters: each sample in the one that its thread runs."""

import collections
import os
import re
import subprocess

import pytest

from conftest import PROGRAMS
from pythons import one_of_each_minor, own_and_fetched_pythons

TURN = re.compile(r"(?:turn|spin)_(\d)_(\d)")
THREADS = 3
LEVELS = 3
SAMPLES_WANTED = 10000
RUNS_AT_MOST = 6  # of 2 s: one or two are enough unless others keep the CPUs busy


def check_each_thread(python, target, profile, *arguments):
    program = target(python, "interpreters.py", *arguments)
    counts = collections.Counter()
    threads = collections.defaultdict(set)
    samples = elsewhere = lost = 0
    for _ in range(RUNS_AT_MOST):
        run = profile("-p", program.pid, "-d", 2, "-r", 9999, "-t")
        samples += run.samples
        # Each run_string compiles anew, perhaps to where the last one's code was.
        replaced = run.ledger["errors"]["code_replaced"]
        elsewhere -= replaced
        lost += sum(run.ledger["errors"].values()) - replaced + run.ledger["no_python"]
        for frames, count in run.stacks:
            seen = {match.groups() for match in (TURN.fullmatch(frame.name) for frame in frames)
                    if match}
            assert len(seen) <= 1, "two interpreters in one stack: %s" % frames
            elsewhere += count if not seen else 0
            for number, level in seen:
                counts[number, level] += count
                threads[number].add(frames[0].label)
        if samples >= SAMPLES_WANTED:
            break
    assert samples >= SAMPLES_WANTED
    assert elsewhere <= 0.01 * samples  # between two turns
    # From 3.12 on there is a moment in each change of interpreter when the thread has no state.
    assert lost <= 0.001 * samples
    assert len(threads) == THREADS
    assert all(len(labels) == 1 for labels in threads.values()), threads
    assert len(set.union(*threads.values())) == THREADS
    for number in threads:
        total = sum(counts[number, str(level)] for level in range(LEVELS))
        for level in range(LEVELS):
            share = counts[number, str(level)] / total
            assert 0.2 < share < 0.5, (number, level, share)


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 8))
@pytest.mark.parametrize("creator", ["thread", "main"])
def test_each_thread_in_its_interpreter(python, target, profile, creator):
    """A state that the main thread created keeps its id up to 3.12, whoever runs it."""
    check_each_thread(python, target, profile, creator, 0)


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 12))
@pytest.mark.parametrize("creator", ["thread", "main"])
def test_interpreters_with_a_gil_of_their_own(python, target, profile, creator):
    check_each_thread(python, target, profile, creator, 1)


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 14))
def test_interpreters_of_the_library(python, target, profile):
    """concurrent.interpreters."""
    check_each_thread(python, target, profile, "thread", 1, "public")


@pytest.mark.pythons(which=one_of_each_minor, since=(3, 11))
def test_interpreters_that_come_and_go(python, target, profile):
    """Their creator runs in each for a while, and has the id of those that others run."""
    run = profile("-p", target(python, "coming_interpreters.py").pid, "-d", 3, "-r", 4999)
    seen = set()
    for frames, _ in run.stacks:
        numbers = {match[1] for match in (TURN.fullmatch(frame.name) for frame in frames) if match}
        names = {frame.name for frame in frames}
        assert len(numbers) + ("create" in names) <= 1, frames
        seen |= numbers | names & {"create"}
    assert seen == {"create", *map(str, range(THREADS))}
    assert run.ledger["errors"]["thread_unclear"] <= 0.001 * run.samples, run.ledger


def without_module():
    return [python for python in one_of_each_minor() if python.version < (3, 8)]


@pytest.fixture(scope="session")
def library(require, tmp_path_factory):
    """library(NAME): the path of what tests/programs/NAME.c makes."""
    def build(name):
        path = str(tmp_path_factory.mktemp("library") / (name + ".so"))
        subprocess.run([require("gcc"), "-shared", "-fPIC", "-O1", "-o", path,
                        os.path.join(PROGRAMS, name + ".c"), "-pthread"], check=True)
        return path
    return build


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=without_module)
def test_interpreters_that_c_creates(python, target, profile, library):
    program = target(python, "interpreters_by_c.py", library("sub_interpreter"))
    counts = collections.Counter()
    samples = errors = 0
    for _ in range(RUNS_AT_MOST):
        run = profile("-p", program.pid, "-d", 3, "-r", 4999)
        samples += run.samples
        # Each is made anew, perhaps with its code where that of the last one was.
        errors += sum(run.ledger["errors"].values()) - run.ledger["errors"]["code_replaced"]
        for frames, count in run.stacks:
            seen = {match.groups() for match in (TURN.fullmatch(frame.name) for frame in frames)
                    if match}
            assert len(seen) <= 1, "two interpreters in one stack: %s" % frames
            counts[seen.pop()[1] if seen else None] += count
        if samples >= SAMPLES_WANTED:
            break
    # How they share the GIL is not for us to say: 2.7's favours one of them, at times.
    assert min(counts["0"], counts["1"]) > 0.1 * samples
    assert errors <= 0.001 * samples, run.ledger


def test_state_that_another_thread_has_made(python, target, profile, library):
    """Whose it says it is, is not who runs it.  Up to 3.10 nothing tells who does."""
    program = target(python, "made_state.py", library("made_state"))
    run = profile("-p", program.pid, "-d", 1, "-r", 1999, "-t")
    seen = collections.defaultdict(collections.Counter)
    for frames, count in run.stacks:
        of_maker = "thread (%d)" % program.pid in frames[0].label
        shown = {frame.name.split("_")[0] for frame in frames[1:] if frame.name.startswith(
            ("maker", "runner"))}
        seen[of_maker].update({shown.pop() if len(shown) == 1 else str(shown): count})
    assert set(seen[True]) == {"maker"}, seen
    assert seen[True]["maker"] > 0.1 * run.samples
    if python.version >= (3, 11):
        assert seen[False]["runner"] > 0.1 * run.samples and "maker" not in seen[False], seen
    else:
        assert set(seen[False]) == {str(set())}, seen
