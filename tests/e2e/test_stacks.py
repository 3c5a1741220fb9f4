# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of every kind: all kinds of calls and callers, and great depths."""

import os
import re
import sys

import pytest

from conftest import PROGRAMS
from legal import BRIEF, Legal, briefly_and_long, check_whole, owners, runs_until
from pythons import one_of_each_minor, own_and_fetched_pythons

sys.path.insert(0, PROGRAMS)
import call_graph  # noqa: E402

NUMBERED = re.compile(r"f\d+")
RATE = 9999
RUNS_AT_MOST = 40


def names_of(program):
    """The functions and classes of a program with lines marked as work."""
    with open(os.path.join(PROGRAMS, program), encoding="utf-8") as file:
        source = file.read()
    owner = owners(source)
    return {owner[number] for number, line in enumerate(source.splitlines(), 1)
            if "# calls: leaf" in line}


@pytest.mark.proves("kinds of calls")
@pytest.mark.pythons(which=one_of_each_minor)
@briefly_and_long(5)
def test_every_kind_of_function(python, target, profile, figure, measured, cpu):
    source = "kinds.py" if python.version >= (3,) else "kinds_2_7.py"
    legal = Legal(python, source)
    program = target(python, source)
    wrong, seen = {}, set()
    samples = whole = 0
    for _ in range(RUNS_AT_MOST):
        run = profile("-p", program.pid, "-r", RATE, "--full-filenames", cpu=cpu)
        seen |= legal.judge(run, wrong)
        samples += run.samples
        whole += run.ledger["python"] - run.ledger["truncated"]
        if samples >= 0.6 * cpu * RATE and seen >= names_of(source):
            break
    figure("{:,} of {:,}".format(sum(wrong.values()), samples))
    assert wrong == {}
    assert names_of(source) - seen == set()
    if cpu > BRIEF:
        check_whole(measured, "every kind of function, " + python.name, whole, samples)


def deep_stacks(run):
    """The stacks of depth.py with Python frames, except the main thread's: it may still start the other
    thread, or begin to wait for its end."""
    return [(frames, count) for frames, count in run.stacks
            if frames[-1].file and frames[0].short not in ("<module>", "_shutdown", "_exitfunc")]


def own_names(run):
    return [[frame.short for frame in frames if frame.file.endswith("depth.py")] for frames, _ in deep_stacks(run)]


@pytest.mark.proves("depth")
@pytest.mark.pythons(which=one_of_each_minor)
def test_990_frames_are_whole(python, target, profile):
    run = profile("-p", target(python, "depth.py", 990).pid, "-r", 999, cpu=BRIEF)
    assert run.ledger["truncated"] == 0 < run.ledger["python"]
    assert all(names == ["descend"] * 990 + ["bottom"] for names in own_names(run))
    assert {frames[0].short.lstrip("_") for frames, _ in deep_stacks(run)} == {"bootstrap"}


def with_frames_for_init():
    return [python for python in one_of_each_minor() if python.version >= (3, 13)]


@pytest.mark.proves("depth")
@pytest.mark.pythons(which=with_frames_for_init)
def test_990_objects_are_whole(python, target, profile):
    """The interpreter puts a frame of its own between nested calls of __init__."""
    run = profile("-p", target(python, "depth.py", 990, "objects").pid, "-r", 999, cpu=BRIEF)
    assert run.ledger["truncated"] == 0 < run.ledger["python"]
    assert all(names == ["__init__"] * 990 + ["bottom"] for names in own_names(run))


@pytest.mark.proves("depth")
@pytest.mark.pythons(which=one_of_each_minor)
def test_5000_frames_are_cut_at_the_root(python, target, profile):
    run = profile("-p", target(python, "depth.py", 5000).pid, "-r", 999, cpu=BRIEF)
    stacks = deep_stacks(run)
    assert run.ledger["truncated"] == sum(count for _, count in stacks) > 0
    for frames, _ in stacks:
        assert frames[0].label == "[deeper frames cut]"
        assert [frame.name for frame in frames[1:]] == ["descend"] * 1022 + ["bottom"]


@pytest.mark.pythons(which=one_of_each_minor)
@briefly_and_long()
def test_a_page_that_is_paged_out_is_read_for_the_next_sample(python, target, profile, measured, cpu):
    runs = runs_until(profile, lambda runs: runs[-1].ledger["python"],
                      "-p", target(python, "paged_out.py").pid, "-r", 999, cpu=cpu)
    # In 3.11 and 3.12 this looks like a stack that is not linked yet.
    reasons = ["frame_fault"] + ["frame_entering"] * (python.version[:2] in ((3, 11), (3, 12)))
    failed = sum(run.ledger["errors"][reason] for run in runs for reason in reasons)
    samples = sum(run.samples for run in runs)
    assert sum(run.ledger["python"] for run in runs) + failed == samples
    for frames, _ in (stack for run in runs for stack in run.stacks):
        descended = [frame.name for frame in frames].count("descend")
        assert descended < 300 if frames[0].label.startswith("[") else descended == 401
    if cpu > BRIEF:
        # A free CPU reads the page soon. On a busy machine it may be there before the first sample.
        measured("samples until a page is read, " + python.name, failed, "< half of %d" % samples)
        assert failed < 0.5 * samples


@pytest.mark.proves("thread storms")
@pytest.mark.pythons(which=one_of_each_minor)
@briefly_and_long()
def test_threads_that_come_and_go(python, target, profile, measured, cpu):
    legal = Legal(python, "storm.py", roots=("<module>", "_bootstrap", "__bootstrap", "raw_job"))
    wrong, seen = {}, set()

    def all_are_seen(runs):
        seen.update(legal.judge(runs[-1], wrong))
        return {"start_threads", "job", "raw_job", "middle", "leaf"} <= seen

    runs = runs_until(profile, all_are_seen, "-p", target(python, "storm.py").pid, "-r", 4999,
                      "--full-filenames", cpu=cpu)
    assert wrong == {}
    if cpu > BRIEF:
        samples = sum(run.samples for run in runs)
        explained = sum(sum(run.ledger["errors"].values()) for run in runs)
        check_whole(measured, "threads that come and go, " + python.name, samples - explained, samples)
        assert not any(run.ledger["lost"] for run in runs)


# The legal stacks of each workload of beginning.py, below its root.
BEGINNINGS = {
    "sort": [["sort"], ["sort", "key"]],
    "make": [["make"], ["make", "__init__"], ["make", "__del__"]],
    "enter": [["enter"], ["enter", "__enter__"], ["enter", "__exit__"], ["enter", "__init__"],
              ["__del__"]],
    "pipe": [["pipe"], ["pipe", "squares"], ["pipe", "squares", "evens"],
             ["pipe", "squares", "evens", "numbers"], ["pipe", "evens"], ["pipe", "numbers"]],
    "share": [["share"], ["share", "consume"], ["share", "consume", "numbers"],
              ["share", "consume", "skip"], ["share", "consume", "skip", "numbers"],
              ["share", "numbers"]],
    "keywords": [["keywords"], ["keywords", "turns"], ["keywords", "turns", "other"],
                 ["keywords", "brief"]],
    "nested": [["nested"], ["nested", "outer"], ["nested", "outer", "other"],
               ["nested", "outer", "inner"], ["nested", "outer", "inner", "brief"]],
    "coroutines": [["coroutines"], ["coroutines", "awaiting"], ["coroutines", "awaiting", "other"],
                   ["coroutines", "awaiting", "awaited"],
                   ["coroutines", "awaiting", "awaited", "brief"]],
}


def every_way_and_each():
    """All workloads in turn in `make test`, and each by itself in part truth."""
    each = [pytest.param([way], marks=pytest.mark.prove("truth"), id=way) for way in BEGINNINGS]
    return pytest.mark.parametrize("ways", [pytest.param(list(BEGINNINGS), id="all"), *each])


@pytest.mark.pythons(which=one_of_each_minor, since=(3, 6))
@every_way_and_each()
def test_calls_that_begin_and_end(python, target, profile, measured, ways):
    """While a call begins or ends, the frame list is inconsistent for a few instructions. No wrong stack appears."""
    run = profile("-p", target(python, "beginning.py", *ways).pid, "-r", RATE, cpu=1)
    legal = [[], *(names for way in ways for names in BEGINNINGS[way])]
    for frames, _ in run.stacks:
        if frames[-1].file:
            assert [frame.short for frame in frames[1:]] in legal, frames
    assert run.ledger["python"] > 0
    if len(ways) == 1:
        check_whole(measured, "calls that begin and end (%s), %s" % (ways[0], python.name),
                    run.ledger["python"], run.samples)


@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 6))
@pytest.mark.parametrize("seed, cpu", [(1, BRIEF), pytest.param(2, 2, marks=pytest.mark.prove("truth"))])
def test_random_calls(python, target, profile, measured, seed, cpu):
    """Only calls that the program makes appear, though frames reuse memory of earlier calls."""
    edges = call_graph.edges(seed)
    run = profile("-p", target(python, "call_graph.py", seed).pid, "-r", RATE, cpu=cpu)
    for frames, _ in run.stacks:
        if not frames[-1].file:
            continue
        assert frames[0].short == "<module>", frames
        numbers = [int(frame.short[1:]) for frame in frames if NUMBERED.fullmatch(frame.short)]
        for caller, callee in zip(numbers, numbers[1:]):
            assert callee in edges[caller], frames
    assert run.ledger["python"] > 0
    if cpu > BRIEF:
        check_whole(measured, "calls by chance, " + python.name, run.ledger["python"], run.samples)


@pytest.mark.pythons(which=one_of_each_minor, since=(3, 6))
@briefly_and_long()
def test_exceptions_that_generators_pass_on(python, target, profile, measured, cpu):
    """In 3.9 a generator that passes on an exception is unlinked from its callers. Otherwise stacks are whole."""
    run = profile("-p", target(python, "delegating.py").pid, "-r", 1999, cpu=cpu)
    for frames, _ in run.stacks:
        assert frames[0].file is None or frames[0].short == "<module>", frames
    taken = 0
    if python.version[:2] == (3, 9):
        taken = run.ledger["errors"]["frame_unlinked"]
        assert taken > 0
    else:
        assert run.count_name("throw") > 0 and run.count_name("outer") > 0
    if cpu > BRIEF:
        check_whole(measured, "exceptions that are handed on, " + python.name, run.ledger["python"] + taken,
                    run.samples)


def test_cells_of_a_notebook(any_python, target, profile):
    run = profile("-p", target(any_python, "cells.py").pid, "-r", 999, cpu=BRIEF)
    files = {frame.name: frame.file for frames, _ in run.stacks for frame in frames}
    assert (files["old_cell"], files["new_cell"]) == ("In [12]", "ipykernel/3141592653.py")


@pytest.mark.pythons(which=one_of_each_minor)
def test_more_threads_than_are_searched(python, target, profile):
    """User space tells BPF where the states of old threads are."""
    program = target(python, "many_threads.py", 2500)
    names = "main", "in_the_midst"
    # The test cannot control which thread gets the GIL.
    runs = runs_until(profile, lambda runs: all(any(run.count_name(name) for run in runs) for name in names),
                      "-p", program.pid, "-r", 499, cpu=BRIEF)
    for run in runs:
        assert run.ledger["errors"]["too_many_threads"] == 0
        assert sum(map(run.count_name, names)) == run.ledger["python"]


@pytest.mark.pythons(which=one_of_each_minor)
def test_more_threads_of_a_forked_process(python, target, profile):
    """2.7 needs the newest states to tell which are the child's. Samples of old threads get a reason."""
    run = profile("-p", target(python, "many_threads.py", 2500, "fork").said, "-r", 499, cpu=BRIEF)
    if python.version < (3,):
        assert run.ledger["errors"]["too_many_threads"] > 0
    else:
        assert run.ledger["errors"]["too_many_threads"] == 0 < run.ledger["python"]


@pytest.mark.proves("fork")
@pytest.mark.pythons(which=one_of_each_minor)
@briefly_and_long()
def test_forked_children(python, target, profile, measured, cpu):
    """Each child shows its own work, and nothing of its parent's."""
    methods = ("fork", "thread", "mp-fork")
    if python.version >= (3,):
        methods += ("mp-spawn", "mp-forkserver")
    programs = [target(python, "forks.py", method) for method in methods]
    work = {program.pid: "parent_work" for program in programs}
    work.update((program.said, "child_work") for program in programs)
    # The CPU time is for each process.
    run = profile(*(word for pid in work for word in ("-p", pid)), "-r", 999, cpu=cpu / len(work))
    found = dict.fromkeys(work, 0)
    for frames, count in run.stacks:
        pid = int(frames[0].label.partition(":")[0].rpartition(" ")[2])
        names = {frame.name for frame in frames}
        assert names & {"parent_work", "child_work"} <= {work[pid]}, frames
        found[pid] += count if work[pid] in names else 0
    assert all(found.values()), found
    if cpu > BRIEF:
        check_whole(measured, "forked children, " + python.name, sum(found.values()), run.samples)
