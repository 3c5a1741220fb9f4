# SPDX-License-Identifier: BSD-2-Clause
"""Stacks of every kind: how a function may come to be called, how deep, and by what."""

import os
import re
import sys

import pytest

from conftest import PROGRAMS, whole_at_least
from legal import Legal, owners
from pythons import one_of_each_minor, own_and_fetched_pythons

sys.path.insert(0, PROGRAMS)
import call_graph  # noqa: E402

NUMBERED = re.compile(r"f\d+")
SAMPLES_WANTED = 50_000
RUNS_AT_MOST = 40  # of 5 s: one or two are enough unless others keep the CPUs busy


def names_of(program):
    """Every function and class of a program that does work, by its marks."""
    with open(os.path.join(PROGRAMS, program), encoding="utf-8") as file:
        source = file.read()
    owner = owners(source)
    return {owner[number] for number, line in enumerate(source.splitlines(), 1)
            if "# calls: leaf" in line}


@pytest.mark.proves("kinds of calls")
@pytest.mark.pythons(which=one_of_each_minor)
def test_every_kind_of_function(python, target, profile, figure):
    source = "kinds.py" if python.version >= (3,) else "kinds_2_7.py"
    legal = Legal(python, source)
    program = target(python, source)
    wrong, seen = {}, set()
    samples = whole = 0
    for _ in range(RUNS_AT_MOST):
        run = profile("-p", program.pid, "-d", 5, "-r", 9999, "--full-filenames")
        seen |= legal.judge(run, wrong)
        samples += run.samples
        whole += run.ledger["python"] - run.ledger["truncated"]
        if samples >= SAMPLES_WANTED:
            break
    print("%d samples, %d of them whole Python stacks" % (samples, whole))
    figure("{:,} of {:,}".format(sum(wrong.values()), samples))
    assert wrong == {}
    assert names_of(source) - seen == set()
    assert whole >= 0.999 * samples
    assert samples >= SAMPLES_WANTED


@pytest.mark.proves("depth")
@pytest.mark.pythons(which=one_of_each_minor)
def test_990_frames_are_whole(python, target, profile):
    run = profile("-p", target(python, "depth.py", 990).pid, "-r", 999, cpu=1)
    assert run.ledger["truncated"] == 0
    assert run.ledger["python"] == run.samples > 10
    for frames, _ in run.stacks:
        own = [frame.name for frame in frames if frame.file.endswith("depth.py")]
        assert own == ["descend"] * 990 + ["bottom"]
        assert frames[0].short.lstrip("_") == "bootstrap"


def with_frames_for_init():
    return [python for python in one_of_each_minor() if python.version >= (3, 13)]


@pytest.mark.proves("depth")
@pytest.mark.pythons(which=with_frames_for_init)
def test_990_objects_are_whole(python, target, profile):
    """Between each and the next, which it makes, the interpreter has a frame of its own."""
    run = profile("-p", target(python, "depth.py", 990, "objects").pid, "-r", 999, cpu=1)
    assert run.ledger["truncated"] == 0
    assert run.ledger["python"] == run.samples > 10
    for frames, _ in run.stacks:
        own = [frame.short for frame in frames if frame.file.endswith("depth.py")]
        assert own == ["__init__"] * 990 + ["bottom"]


@pytest.mark.proves("depth")
@pytest.mark.pythons(which=one_of_each_minor)
def test_5000_frames_are_cut_at_the_root(python, target, profile):
    run = profile("-p", target(python, "depth.py", 5000).pid, "-r", 999, cpu=1)
    assert run.ledger["truncated"] == run.ledger["python"] == run.samples > 10
    for frames, _ in run.stacks:
        assert frames[0].label == "[deeper frames cut]"
        assert [frame.name for frame in frames[1:]] == ["descend"] * 1022 + ["bottom"]


@pytest.mark.pythons(which=one_of_each_minor)
def test_what_is_paged_out_is_read_the_next_time(python, target, profile):
    run = profile("-p", target(python, "paged_out.py").pid, "-r", 999, cpu=2)
    failed = run.ledger["errors"]["frame_fault"]
    if python.version[:2] in ((3, 11), (3, 12)):
        # They cannot tell it from a stack that is not linked yet.
        failed += run.ledger["errors"]["frame_entering"]
    # Until it is read: soon, where there is a CPU to do it.
    assert 0 < failed < 0.5 * run.samples
    assert run.ledger["python"] + failed == run.samples
    for frames, _ in run.stacks:
        descended = [frame.name for frame in frames].count("descend")
        assert descended < 300 if frames[0].label.startswith("[") else descended == 401


@pytest.mark.proves("thread storms")
@pytest.mark.pythons(which=one_of_each_minor)
def test_threads_that_come_and_go(python, target, profile):
    legal = Legal(python, "storm.py", roots=("<module>", "_bootstrap", "__bootstrap", "raw_job"))
    wrong = {}
    run = profile("-p", target(python, "storm.py").pid, "-r", 4999, "--full-filenames", cpu=2)
    seen = legal.judge(run, wrong)
    assert wrong == {}
    assert {"start_threads", "job", "raw_job", "middle", "leaf"} <= seen
    assert sum(run.ledger["errors"].values()) <= 0.001 * run.samples
    assert run.ledger["lost"] == 0


# What each way of beginning.py may be seen in, from the way on.
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


@pytest.mark.pythons(which=one_of_each_minor, since=(3, 6))
@pytest.mark.parametrize("way", BEGINNINGS)
def test_calls_that_begin_and_end(python, target, profile, way):
    """The interpreter's lists are in between states for some instructions; it is known in which."""
    run = profile("-p", target(python, "beginning.py", way).pid, "-r", 9999, cpu=2)
    for frames, _ in run.stacks:
        if frames[-1].file:
            assert [frame.short for frame in frames[1:]] in [[], *BEGINNINGS[way]], frames
    assert run.ledger["python"] >= whole_at_least(run.samples), run.ledger


@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 6))
@pytest.mark.parametrize("seed", [1, 2])
def test_calls_by_chance(python, target, profile, seed):
    """None but those that the program makes, whatever other calls have left where a frame comes to lie."""
    edges = call_graph.edges(seed)
    run = profile("-p", target(python, "call_graph.py", seed).pid, "-r", 9999, cpu=2)
    for frames, _ in run.stacks:
        if not frames[-1].file:
            continue
        assert frames[0].short == "<module>", frames
        numbers = [int(frame.short[1:]) for frame in frames if NUMBERED.fullmatch(frame.short)]
        for caller, callee in zip(numbers, numbers[1:]):
            assert callee in edges[caller], frames
    assert run.ledger["python"] >= whole_at_least(run.samples), run.ledger


@pytest.mark.pythons(which=one_of_each_minor, since=(3, 6))
def test_exceptions_that_are_handed_on(python, target, profile):
    """3.9 takes the callers from a generator that hands one on; elsewhere every stack is whole."""
    run = profile("-p", target(python, "delegating.py").pid, "-r", 1999, cpu=2)
    for frames, _ in run.stacks:
        assert frames[0].file is None or frames[0].short == "<module>", frames
    taken = 0
    if python.version[:2] == (3, 9):
        taken = run.ledger["errors"]["frame_unlinked"]
        assert taken > 0.2 * run.samples
    else:
        assert run.count_name("throw") > 0.05 * run.samples
        assert run.count_name("outer") > 0.1 * run.samples
    assert run.ledger["python"] + taken >= whole_at_least(run.samples), run.ledger


@pytest.mark.pythons(which=one_of_each_minor)
def test_more_threads_than_are_searched(python, target, profile):
    """The kernel is told where the old ones are."""
    program = target(python, "many_threads.py", 2500)
    run = profile("-p", program.pid, "-r", 499, cpu=1)
    assert run.ledger["python"] == run.samples
    counts = [run.count_name(name) for name in ("main", "in_the_midst")]
    assert sum(counts) == run.samples and min(counts) > 0.1 * run.samples


@pytest.mark.pythons(which=one_of_each_minor)
def test_more_threads_of_a_forked_process(python, target, profile):
    """In 2.7 its newer states decide which are its own; the old ones' samples say why they are none."""
    run = profile("-p", target(python, "many_threads.py", 2500, "fork").said, "-r", 499, cpu=1)
    ledger = run.ledger
    if python.version < (3,):
        assert ledger["errors"]["too_many_threads"] == run.samples - ledger["python"] > 0
    else:
        assert ledger["python"] == run.samples > 0


@pytest.mark.proves("fork")
@pytest.mark.pythons(which=one_of_each_minor)
def test_forked_children(python, target, profile):
    """Each child shows its own work, and nothing of what its parent does or did."""
    methods = ("fork", "thread", "mp-fork")
    if python.version >= (3,):
        methods += ("mp-spawn", "mp-forkserver")
    programs = [target(python, "forks.py", method) for method in methods]
    work = {program.pid: "parent_work" for program in programs}
    work.update((program.said, "child_work") for program in programs)
    run = profile(*(word for pid in work for word in ("-p", pid)), "-r", 999, cpu=0.3)
    found = dict.fromkeys(work, 0)
    for frames, count in run.stacks:
        pid = int(frames[0].label.partition(":")[0].rpartition(" ")[2])
        names = {frame.name for frame in frames}
        assert names & {"parent_work", "child_work"} <= {work[pid]}, frames
        found[pid] += count if work[pid] in names else 0
    assert all(count > 0.02 * run.samples for count in found.values()), found
    assert run.ledger["python"] >= whole_at_least(run.samples), run.ledger
    assert sum(found.values()) >= whole_at_least(run.samples)
