# SPDX-License-Identifier: BSD-2-Clause
"""Profiles of 3.14t and 3.15t, which are not available as binaries: stand-ins take their place.

A stand-in prints every stack that a sample of it may show.
"""

import collections

import pytest

from legal import BRIEF, briefly_and_long
from standins import UNAVAILABLE, each, expected, places, seen
from test_changes import GONE, UNREADABLE

THREADS = range(4)
FRAMES_MAX = 1023

pytestmark = pytest.mark.parametrize("python", each(UNAVAILABLE))


@pytest.mark.proves("impossible stacks")
@briefly_and_long(7)
def test_no_impossible_stack(python, standin, target, profile, figure, cpu):
    program = target.start([standin(python)])
    run = profile("-p", program.pid, "-r", 9999, cpu=cpu)
    legal = expected(program.said, THREADS)
    wrong = sum(count for stack, count in seen(run).items() if stack not in legal)
    figure("{:,} of {:,}".format(wrong, run.samples))
    assert wrong == 0 and legal == set(seen(run))
    assert sum(seen(run).values()) == run.samples == run.ledger["python"]
    assert "this pybpfprof does not know" not in run.stderr


def are_same(deep, others):
    """A function, because pytest would compare their texts for minutes if a plain assertion failed."""
    return deep == others


@pytest.mark.proves("depth")
def test_990_frames_are_whole(python, standin, target, profile):
    program = target.start([standin(python), "deep", "990"])
    run = profile("-p", program.pid, "-r", 999, cpu=BRIEF)
    assert run.ledger["truncated"] == 0
    assert {len(stack) for stack in seen(run)} == {990}
    assert are_same(set(seen(run)), expected(program.said, THREADS))
    assert run.ledger["python"] == run.samples == sum(seen(run).values())


@pytest.mark.proves("depth")
def test_5000_frames_are_cut_at_the_root(python, standin, target, profile):
    program = target.start([standin(python), "deep", "5000"])
    run = profile("-p", program.pid, "-r", 999, cpu=BRIEF)
    assert run.ledger["truncated"] == run.ledger["python"] == run.samples
    assert {frames[0].label for frames, _ in run.stacks} == {"[deeper frames cut]"}
    assert are_same({places(frames[1:]) for frames, _ in run.stacks},
                    {stack[-FRAMES_MAX:] for stack in expected(program.said, THREADS)})


@pytest.mark.proves("names, Unicode")
def test_names_of_every_kind(python, standin, target, profile):
    """Names of functions and files, with characters of 1 to 4 bytes."""
    program = target.start([standin(python)])
    run = profile("-p", program.pid, "-r", 999, "--full-filenames", cpu=BRIEF)
    legal = expected(program.said, THREADS, file_of=str)
    assert set(seen(run)) == legal
    widths = {max(len(character.encode("utf-8")) for character in name)
              for stack in legal for name, _, _ in stack}
    assert widths == {1, 2, 3, 4}


def without_line(stack):
    """STACK without its innermost line: the code was freed before the start of the thread's copy of the
    instructions was read."""
    return stack[:-1] + (stack[-1][:2] + (None,),)


@pytest.mark.proves("code churn")
@briefly_and_long()
def test_new_code_at_the_address_of_freed_code(python, standin, target, profile, cpu):
    """The caller's line tells which code it is.  The first thread has no copies of instructions."""
    program = target.start([standin(python), "churn"])
    run = profile("-p", program.pid, "-r", 3999, cpu=cpu)
    of_first, of_others = (expected(program.said, numbers) for numbers in (THREADS[:1], THREADS[1:]))
    dropped = {stack for stack in of_first | of_others if stack[-1][0].startswith("dropped")}
    found = {stack for stack in seen(run) if stack[-1][0] not in (GONE, UNREADABLE)}
    assert found - of_first - of_others - set(map(without_line, dropped & of_others)) == set()
    assert dropped & of_first <= found
    assert {stack[-1][0] for stack in dropped} <= {stack[-1][0] for stack in found - of_first}
    if cpu > BRIEF:
        assert run.ledger["name_unknown"] <= 0.01 * run.samples
        assert run.ledger["errors"]["code_replaced"] == 0


@pytest.mark.proves("thread storms")
@briefly_and_long()
def test_threads_that_come_and_go(python, standin, target, profile, cpu):
    """Each thread has one number, and shows only that number's stacks."""
    program = target.start([standin(python), "storm"])
    run = profile("-p", program.pid, "-r", 4999, "-t", cpu=cpu)
    legal = [expected(program.said, [number]) for number in THREADS]
    by_thread = collections.defaultdict(set)
    for frames, _ in run.stacks:
        if frames[-1].file:
            by_thread[frames[0].label].add(places(frames[1:]))
    wrong = {thread: stacks for thread, stacks in by_thread.items()
             if not any(stacks <= of_number for of_number in legal)}
    assert wrong == {}
    assert set.union(*by_thread.values()) == set.union(*legal)
    if cpu > BRIEF:
        assert len(by_thread) > 100
        assert sum(run.ledger["errors"].values()) <= 0.001 * run.samples
        assert run.ledger["lost"] == 0
        assert run.ledger["python"] > 0.5 * run.samples
