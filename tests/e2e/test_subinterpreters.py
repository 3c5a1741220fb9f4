# SPDX-License-Identifier: BSD-2-Clause
"""Threads that go through several interpreters: each sample in the one that its thread runs."""

import collections
import re
import subprocess

import pytest

TURN = re.compile(r"(?:turn|spin)_(\d)_(\d)")
THREADS = 3
LEVELS = 3
SAMPLES_WANTED = 2000
RUNS_AT_MOST = 6  # of 2 s: one or two are enough unless others keep the CPUs busy
IMPORT = "import importlib as i\ntry: i.import_module('_interpreters')\n" \
         "except ImportError: i.import_module('_xxsubinterpreters')"


@pytest.mark.parametrize("creator", ["thread", "main"])
@pytest.mark.parametrize("own_gil", [0, 1])
def test_each_thread_in_its_interpreter(python, target, profile, creator, own_gil):
    """A state that the main thread created keeps its id up to 3.12, whoever runs it."""
    if own_gil and python.version < (3, 12):
        pytest.skip("before 3.12 there is one GIL for all interpreters")
    if subprocess.run([python.path, "-c", IMPORT], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this Python has no module for interpreters")
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
