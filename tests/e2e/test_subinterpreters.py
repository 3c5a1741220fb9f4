# SPDX-License-Identifier: BSD-2-Clause
"""Threads that run in several interpreters: each sample shows the one that its thread runs in, and the
interpreters that called it."""

import collections
import os
import re
import subprocess

import pytest

from conftest import PROGRAMS
from legal import BRIEF, briefly_and_long, check_whole, runs_until
from pythons import DEBUG, one_of_each_minor, own_and_fetched_pythons

TURN = re.compile(r"(?:turn|spin)_(\d)_(\d)")
THREADS = 3
LEVELS = 3
PLACES = {(str(number), str(level)) for number in range(THREADS) for level in range(LEVELS)}
# Up to 3.9 the calling interpreter's frames are unknown.
JOINED_SINCE = (3, 10)
CALLED = "[called from another interpreter]"


def check_callers(python, frames):
    """Checks that each level in a stack of interpreters.py is called by the one before. Returns (thread,
    innermost level), or None for a stack without levels."""
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


def stacks_of(runs):
    return [stack for run in runs for stack in run.stacks]


def errors_of(runs, *others):
    """The samples with an error other than OTHERS."""
    return sum(count for run in runs for reason, count in run.ledger["errors"].items()
               if reason not in others)


@pytest.fixture
def check_each_thread(python, target, profile, measured):
    """check_each_thread(CPU, ARGUMENT...) profiles and checks interpreters.py."""
    def check(cpu, *arguments):
        program = target(python, "interpreters.py", *arguments)
        runs = runs_until(profile, lambda runs: PLACES <= {check_callers(python, frames)
                                                           for frames, _ in stacks_of(runs)},
                          "-p", program.pid, "-r", 9999, "-t", cpu=cpu)
        counts = collections.Counter()
        threads = collections.defaultdict(set)
        for frames, count in stacks_of(runs):
            place = check_callers(python, frames)
            counts[place] += count
            if place:
                threads[place[0]].add(frames[0].label)
        assert all(len(labels) == 1 for labels in threads.values()), threads
        assert len(set.union(*threads.values())) == len(threads) == THREADS
        if cpu > BRIEF:
            check_counts(runs, counts, " ".join(map(str, arguments)))

    def check_counts(runs, counts, what):
        samples = sum(run.samples for run in runs)
        # Each run_string compiles again, perhaps to the address of the last one's code.
        replaced = sum(run.ledger["errors"]["code_replaced"] for run in runs)
        assert counts[None] - replaced <= 0.01 * samples  # between two turns
        # From 3.12 on a thread briefly has no state while it changes interpreters.
        lost = sum(run.ledger["no_python"] for run in runs) + errors_of(
            runs, "code_replaced", *["caller_unclear"] * (python.version < JOINED_SINCE))
        check_whole(measured, "interpreters (%s), %s" % (what, python.name), samples - lost, samples)
        for number in range(THREADS):
            of_thread = [counts[str(number), str(level)] for level in range(LEVELS)]
            assert 0.2 * sum(of_thread) < min(of_thread), of_thread
            assert max(of_thread) < 0.5 * sum(of_thread), of_thread
    return check


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 8))
@pytest.mark.parametrize("creator", ["thread", "main"])
@briefly_and_long()
def test_each_thread_in_its_interpreter(python, check_each_thread, creator, cpu):
    """Up to 3.12 a state keeps the ID of the thread that created it, even if another runs it."""
    check_each_thread(cpu, creator, 0)


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 12))
@pytest.mark.parametrize("creator", ["thread", "main"])
@briefly_and_long()
def test_interpreters_with_a_gil_of_their_own(python, check_each_thread, creator, cpu):
    check_each_thread(cpu, creator, 1)


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 14))
@briefly_and_long()
def test_interpreters_of_the_library(python, check_each_thread, cpu):
    """concurrent.interpreters."""
    check_each_thread(cpu, "thread", 1, "public")


@pytest.mark.pythons(which=one_of_each_minor, since=JOINED_SINCE)
@briefly_and_long(3)
def test_interpreters_that_come_and_go(python, target, profile, cpu):
    """The creating thread runs in each for a while. The states that others run have its ID."""
    wanted = {"create", *("spin_%d_0" % number for number in range(THREADS))}
    runs = runs_until(profile, lambda runs: wanted <= {frame.name for frames, _ in stacks_of(runs)
                                                       for frame in frames},
                      "-p", target(python, "coming_interpreters.py").pid, "-r", 4999, cpu=cpu)
    seen = set()
    for frames, _ in stacks_of(runs):
        numbers = {match[1] for match in (TURN.fullmatch(frame.name) for frame in frames) if match}
        names = {frame.name for frame in frames}
        assert len(numbers) + ("create" in names) <= 1, frames
        assert not numbers or frames[0].name in (CALLED, "Thread._bootstrap"), frames
        seen |= numbers | names & {"create"}
    assert seen == {"create", *map(str, range(THREADS))}
    if cpu > BRIEF:
        for reason in "thread_unclear", "caller_unclear":
            found = sum(run.ledger["errors"][reason] for run in runs)
            assert found <= 0.001 * sum(run.samples for run in runs)


IN_TURN = re.compile(r"(call|run|leaf)_(\d)")


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 14))
@pytest.mark.parametrize("rate, cpu", [(999, 1), *(pytest.param(rate, 5, marks=pytest.mark.prove("truth"))
                                                   for rate in (99, 999))])
def test_interpreters_in_turn(python, target, profile, rate, cpu):
    """Each interpreter's code objects reuse the addresses and versions of the last one's."""
    run = profile("-p", target(python, "interpreters_in_turn.py").pid, "-r", rate, cpu=cpu)
    counts = collections.Counter()
    for frames, count in run.stacks:
        seen = [match.groups() for match in (IN_TURN.fullmatch(frame.name) for frame in frames) if match]
        assert len({number for _, number in seen}) <= 1, frames
        if any(kind == "run" for kind, _ in seen):
            counts[seen[0][1]] += count
    assert sorted(counts) == ["0", "1", "2"], counts
    assert cpu == 1 or max(counts.values()) < 1.6 * min(counts.values()), counts


POOL = ("call", "do_call", "<module>", "pool_spin")
CALL = ("call", "call", "called")


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 14))
@briefly_and_long(3)
def test_workers_in_interpreters(python, target, profile, measured, cpu):
    """InterpreterPoolExecutor, and functions called in another interpreter."""
    runs = runs_until(profile, lambda runs: all(any(run.count_name(name) for run in runs)
                                                for name in ("pool_spin", "called")),
                      "-p", target(python, "interpreters_pool.py").pid, "-r", 4999, cpu=cpu)
    for frames, _ in stacks_of(runs):
        names = [frame.short for frame in frames]
        for leaf in ("pool_spin", "called"):
            # Stacks with unknown callers are counted below.
            if leaf not in names or names[0] == CALLED:
                continue
            wanted = POOL if leaf == "pool_spin" else CALL
            root = "_worker" if leaf == "pool_spin" else "run"
            assert names[0] == "_bootstrap" and root in names, names
            shown = [name for name in names if name in wanted]
            assert shown[:len(wanted)] == list(wanted), names
    if cpu > BRIEF:
        samples = sum(run.samples for run in runs)
        check_whole(measured, "workers in interpreters, " + python.name, samples - errors_of(runs), samples)


@pytest.fixture(scope="session")
def library(require, tmp_path_factory):
    """library(NAME): the path of the library built from tests/programs/NAME.c."""
    def build(name):
        path = str(tmp_path_factory.mktemp("library") / (name + ".so"))
        subprocess.run([require("gcc"), "-shared", "-fPIC", "-O1", "-o", path,
                        os.path.join(PROGRAMS, name + ".c"), "-pthread"], check=True)
        return path
    return build


def check_called_by_c(python, frames):
    """In the second interpreter of interpreters_by_c.py, a stack has the caller's frames from 3.10 on."""
    names = [frame.short for frame in frames]
    module = names.index("<module>")
    if python.version >= JOINED_SINCE:
        assert names[:module][-1] == "work" and CALLED not in names, names
    else:
        assert names[:module] == [CALLED], names


@pytest.mark.proves("sub-interpreters")
@pytest.mark.pythons(which=one_of_each_minor)
@briefly_and_long()
def test_interpreters_that_c_creates(python, target, profile, library, measured, cpu):
    def levels_of(frames):
        seen = [match.groups() for match in (TURN.fullmatch(frame.name) for frame in frames) if match]
        assert len({number for number, _ in seen}) <= 1, "two threads in one stack: %s" % frames
        return [level for _, level in seen]

    program = target(python, "interpreters_by_c.py", library("sub_interpreter"))
    # The test cannot control how they share the GIL: 2.7's sometimes favours one of them.
    runs = runs_until(profile, lambda runs: {"0", "1"} <= {level for frames, _ in stacks_of(runs)
                                                           for level in levels_of(frames)[-1:]},
                      "-p", program.pid, "-r", 4999, cpu=cpu)
    for frames, _ in stacks_of(runs):
        levels = levels_of(frames)
        if levels[-1:] == ["1"]:
            check_called_by_c(python, frames)
        else:
            assert set(levels) <= {"0"}, frames
    if cpu > BRIEF:
        samples = sum(run.samples for run in runs)
        # Each interpreter is new, perhaps with its code at the address of the last one's.
        errors = errors_of(runs, "code_replaced", *["caller_unclear"] * (python.version < JOINED_SINCE))
        check_whole(measured, "interpreters that C creates, " + python.name, samples - errors, samples)


def innermost(names):
    return next((name for name in reversed(names) if name in ("outer", "middle", "innermost")), None)


@pytest.mark.pythons(which=one_of_each_minor, since=JOINED_SINCE)
@briefly_and_long()
def test_back_in_the_first_interpreter(python, target, profile, library, cpu):
    """C code re-enters a state whose frames lie below the other interpreter's: no order is invented."""
    program = target(python, "interpreters_back.py", library("sub_interpreter"))
    run = profile("-p", program.pid, "-r", 1999, cpu=cpu)
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
    assert {"outer alone", "middle", "innermost"} <= set(seen), seen
    assert cpu == BRIEF or run.ledger["errors"]["caller_unclear"] <= 1.1 * seen["innermost"]


def with_states_for_other_threads():
    """All but the debug builds from 3.6 to 3.11: their allocator aborts if another thread created the
    thread's state."""
    return [python for python in own_and_fetched_pythons()
            if python.kind != DEBUG or not (3, 6) <= python.version < (3, 12)]


@pytest.mark.pythons(which=with_states_for_other_threads)
def test_a_state_created_by_another_thread(python, target, profile, library):
    """The state has its creator's ID, but another thread runs it. Up to 3.9 nothing says which."""
    program = target(python, "made_state.py", library("made_state"))
    makers = "thread (%d)" % program.pid
    runs = runs_until(profile, lambda runs: len({makers in frames[0].label
                                                 for frames, _ in stacks_of(runs)}) == 2,
                      "-p", program.pid, "-r", 1999, "-t", cpu=1)
    seen = collections.defaultdict(set)
    for frames, _ in stacks_of(runs):
        seen[makers in frames[0].label] |= {frame.name.split("_")[0] for frame in frames[1:]
                                            if frame.name.startswith(("maker", "runner"))}
    assert seen == {True: {"maker"}, False: {"runner"} if python.version >= JOINED_SINCE else set()}
