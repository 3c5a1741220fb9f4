# SPDX-License-Identifier: BSD-2-Clause
"""Threads that go through several interpreters: each sample in the one that its thread runs, on top of
those that called it."""

import collections
import os
import re
import subprocess

import pytest

from conftest import PROGRAMS
from pythons import DEBUG, one_of_each_minor, own_and_fetched_pythons

TURN = re.compile(r"(?:turn|spin)_(\d)_(\d)")
THREADS = 3
LEVELS = 3
SAMPLES_WANTED = 10000
RUNS_AT_MOST = 15  # of 2 s: one or two are enough unless others keep the CPUs busy
# Up to 3.9 it is known that another interpreter has called, but not from where.
JOINED_SINCE = (3, 10)
CALLED = "[called from another interpreter]"


def check_callers(python, frames):
    """The thread, and the levels that a stack of interpreters.py may have, each called by the one before.
    None for one that has none."""
    names = [frame.name for frame in frames[1:]]
    seen = [match.groups() for match in map(TURN.fullmatch, names) if match]
    if not seen:
        return None
    number, last = seen[-1]
    turns = [name for name in names if name.startswith("turn_")]
    modules = names.count("<module>")
    if python.version >= JOINED_SINCE or last == "0":
        assert turns == ["turn_%s_%d" % (number, level) for level in range(len(turns))], names
        assert len(turns) == int(last) + 1 and names[0].endswith("_bootstrap"), names
        assert modules in (int(last), int(last) + 1), names  # the next one may begin, or just have ended
        assert [name for name in names if TURN.fullmatch(name) or name == "<module>"][1::2][:int(last)] == \
            int(last) * ["<module>"], names
    else:
        assert turns == ["turn_%s_%s" % (number, last)] and names[:2] == [CALLED, "<module>"], names
    return number, last


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
        if python.version < JOINED_SINCE:
            lost -= run.ledger["errors"]["caller_unclear"]
        for frames, count in run.stacks:
            place = check_callers(python, frames)
            if not place:
                elsewhere += count
                continue
            counts[place] += count
            threads[place[0]].add(frames[0].label)
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


@pytest.mark.pythons(which=one_of_each_minor, since=JOINED_SINCE)
def test_interpreters_that_come_and_go(python, target, profile):
    """Their creator runs in each for a while, and has the id of those that others run."""
    run = profile("-p", target(python, "coming_interpreters.py").pid, "-r", 4999, cpu=3)
    seen = set()
    for frames, _ in run.stacks:
        numbers = {match[1] for match in (TURN.fullmatch(frame.name) for frame in frames) if match}
        names = {frame.name for frame in frames}
        assert len(numbers) + ("create" in names) <= 1, frames
        assert not numbers or frames[0].name in (CALLED, "Thread._bootstrap"), frames
        seen |= numbers | names & {"create"}
    assert seen == {"create", *map(str, range(THREADS))}
    for reason in "thread_unclear", "caller_unclear":
        assert run.ledger["errors"][reason] <= 0.001 * run.samples, run.ledger


IN_TURN = re.compile(r"(call|run|leaf)_(\d)")


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 14))
@pytest.mark.parametrize("rate", [99, 999])
def test_interpreters_in_turn(python, target, profile, rate):
    """One after another, whose code objects have the addresses and the versions of the last one's."""
    run = profile("-p", target(python, "interpreters_in_turn.py").pid, "-r", rate, "-d", 5)
    counts = collections.Counter()
    for frames, count in run.stacks:
        seen = [match.groups() for match in (IN_TURN.fullmatch(frame.name) for frame in frames) if match]
        assert len({number for _, number in seen}) <= 1, frames
        if any(kind == "run" for kind, _ in seen):
            counts[seen[0][1]] += count
    assert sorted(counts) == ["0", "1", "2"], counts
    assert max(counts.values()) < 1.6 * min(counts.values()), counts


POOL = ("call", "do_call", "<module>", "pool_spin")
CALL = ("call", "call", "called")


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 14))
def test_workers_in_interpreters(python, target, profile):
    """InterpreterPoolExecutor, and functions that are called in another interpreter."""
    run = profile("-p", target(python, "interpreters_pool.py").pid, "-r", 4999, cpu=3)
    seen = collections.Counter()
    for frames, count in run.stacks:
        names = [frame.short for frame in frames]
        for leaf in ("pool_spin", "called"):
            # What could not be told says so, and is counted below.
            if leaf not in names or names[0] == CALLED:
                continue
            wanted = POOL if leaf == "pool_spin" else CALL
            root = "_worker" if leaf == "pool_spin" else "run"
            assert names[0] == "_bootstrap" and root in names, names
            shown = [name for name in names if name in wanted]
            assert shown[:len(wanted)] == list(wanted), names
            seen[leaf] += count
    # As the scheduler shares the CPUs among them and what else runs.
    assert min(seen["pool_spin"], seen["called"]) > 0.03 * run.samples, seen
    assert sum(run.ledger["errors"].values()) <= 0.001 * run.samples, run.ledger


@pytest.fixture(scope="session")
def library(require, tmp_path_factory):
    """library(NAME): the path of what tests/programs/NAME.c makes."""
    def build(name):
        path = str(tmp_path_factory.mktemp("library") / (name + ".so"))
        subprocess.run([require("gcc"), "-shared", "-fPIC", "-O1", "-o", path,
                        os.path.join(PROGRAMS, name + ".c"), "-pthread"], check=True)
        return path
    return build


def check_called_by_c(python, frames):
    """A stack of interpreters_by_c.py in the second interpreter: what called it is below."""
    names = [frame.short for frame in frames]
    module = names.index("<module>")
    if python.version >= JOINED_SINCE:
        assert names[:module][-1] == "work" and CALLED not in names, names
    else:
        assert names[:module] == [CALLED], names


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=one_of_each_minor)
def test_interpreters_that_c_creates(python, target, profile, library):
    program = target(python, "interpreters_by_c.py", library("sub_interpreter"))
    counts = collections.Counter()
    samples = errors = 0
    for _ in range(RUNS_AT_MOST):
        run = profile("-p", program.pid, "-d", 3, "-r", 4999)
        samples += run.samples
        # Each is made anew, perhaps with its code where that of the last one was.
        errors += sum(run.ledger["errors"].values()) - run.ledger["errors"]["code_replaced"]
        if python.version < JOINED_SINCE:
            errors -= run.ledger["errors"]["caller_unclear"]
        for frames, count in run.stacks:
            seen = [match.groups() for match in (TURN.fullmatch(frame.name) for frame in frames)
                    if match]
            assert len({number for number, _ in seen}) <= 1, "two threads in one stack: %s" % frames
            levels = [level for _, level in seen]
            if levels and levels[-1] == "1":
                check_called_by_c(python, frames)
            else:
                assert set(levels) <= {"0"}, frames
            counts[levels[-1] if levels else None] += count
        if samples >= SAMPLES_WANTED:
            break
    # How they share the GIL is not for us to say: 2.7's favours one of them, at times.
    assert min(counts["0"], counts["1"]) > 0.1 * samples
    assert errors <= 0.001 * samples, run.ledger


def innermost(names):
    return next((name for name in reversed(names) if name in ("outer", "middle", "innermost")), None)


@pytest.mark.pythons(which=one_of_each_minor, since=JOINED_SINCE)
def test_back_in_the_first_interpreter(python, target, profile, library):
    """C code goes back to a state whose frames lie below the other interpreter's: no order is made up."""
    program = target(python, "interpreters_back.py", library("sub_interpreter"))
    run = profile("-p", program.pid, "-r", 1999, cpu=2)
    wanted = {"outer": ["<module>", "outer"],
              "middle": ["<module>", "outer", "<module>", "middle"],
              "innermost": [CALLED, "<module>", "outer", "<module>", "innermost"]}
    seen = collections.Counter()
    for frames, count in run.stacks:
        names = [frame.name for frame in frames]
        where = innermost(names)
        if where in ("middle", "innermost"):
            assert names[:len(wanted[where])] == wanted[where], names
        elif names == wanted["outer"]:
            where = "outer alone"
        seen[where] += count
    assert min(seen["outer alone"], seen["middle"], seen["innermost"]) > 0.1 * run.samples, seen
    assert run.ledger["errors"]["caller_unclear"] <= 1.1 * seen["innermost"]


def with_states_for_other_threads():
    """All but the debug builds up to 3.11, which ask at each allocation whether the thread has made its
    state itself, and end."""
    return [python for python in own_and_fetched_pythons()
            if python.kind != DEBUG or not (3, 6) <= python.version < (3, 12)]


@pytest.mark.pythons(which=with_states_for_other_threads)
def test_state_that_another_thread_has_made(python, target, profile, library):
    """Whose it says it is, is not who runs it.  Up to 3.9 nothing tells who does."""
    program = target(python, "made_state.py", library("made_state"))
    run = profile("-p", program.pid, "-r", 1999, "-t", cpu=2)
    seen = collections.defaultdict(collections.Counter)
    for frames, count in run.stacks:
        of_maker = "thread (%d)" % program.pid in frames[0].label
        shown = {frame.name.split("_")[0] for frame in frames[1:] if frame.name.startswith(
            ("maker", "runner"))}
        seen[of_maker].update({shown.pop() if len(shown) == 1 else str(shown): count})
    assert set(seen[True]) == {"maker"}, seen
    assert seen[True]["maker"] > 0.1 * run.samples
    if python.version >= JOINED_SINCE:
        assert seen[False]["runner"] > 0.1 * run.samples and "maker" not in seen[False], seen
    else:
        assert set(seen[False]) == {str(set())}, seen
