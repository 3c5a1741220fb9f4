# SPDX-License-Identifier: BSD-2-Clause
"""Threads that go through several interpreters: each sample in the one that its thread runs."""

import collections
import re

import pytest

from pythons import own_and_fetched_pythons

TURN = re.compile(r"(?:turn|spin)_(\d)_(\d)")
THREADS = 3
LEVELS = 3
SAMPLES_WANTED = 2000
RUNS_AT_MOST = 6  # of 2 s: one or two are enough unless others keep the CPUs busy


def check_each_thread(python, target, profile, creator, own_gil):
    program = target(python, "interpreters.py", creator, own_gil)
    counts = collections.Counter()
    threads = collections.defaultdict(set)
    samples = elsewhere = 0
    for _ in range(RUNS_AT_MOST):
        run = profile("-p", program.pid, "-d", 2, "-r", 2999, "-t")
        samples += run.samples
        # Each run_string compiles anew, perhaps to where the last one's code was.
        elsewhere -= run.ledger["errors"]["code_replaced"]
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
    assert elsewhere <= 0.01 * samples
    assert len(threads) == THREADS
    assert all(len(labels) == 1 for labels in threads.values()), threads
    assert len(set.union(*threads.values())) == THREADS
    for number in threads:
        total = sum(counts[number, str(level)] for level in range(LEVELS))
        for level in range(LEVELS):
            share = counts[number, str(level)] / total
            assert 0.2 < share < 0.5, (number, level, share)


@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 8))
@pytest.mark.parametrize("creator", ["thread", "main"])
def test_each_thread_in_its_interpreter(python, target, profile, creator):
    """A state that the main thread created keeps its id up to 3.12, whoever runs it."""
    check_each_thread(python, target, profile, creator, 0)


@pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 12))
@pytest.mark.parametrize("creator", ["thread", "main"])
def test_interpreters_with_a_gil_of_their_own(python, target, profile, creator):
    check_each_thread(python, target, profile, creator, 1)
