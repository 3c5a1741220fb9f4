# SPDX-License-Identifier: BSD-2-Clause
"""A profile is true: it has no impossible stacks, and its shares are right."""

import math
import sys

import pytest

from conftest import PROGRAMS, stolen_seconds, wait_used
from legal import DeepLegal, check_whole
from pythons import find_pythons, found_and_debug_pythons, one_of_each_minor

sys.path.insert(0, PROGRAMS)
from totals import Totals  # noqa: E402

RATE = 9999
FEW, MANY = 3_000, 50_000


@pytest.mark.proves("impossible stacks")
@pytest.mark.pythons(which=found_and_debug_pythons)
@pytest.mark.parametrize("wanted", [FEW, pytest.param(MANY, marks=pytest.mark.prove("truth"))])
def test_no_impossible_stacks(python, target, profile, figure, measured, wanted):
    legal = DeepLegal(python, roots=("<module>", "work"))
    programs = [target(python, "deep.py") for _ in range(2)]
    arguments = [word for program in programs for word in ("-p", program.pid)]
    samples = whole = lost = 0
    wrong = {}
    while samples < wanted:
        run = profile(*arguments, "-r", RATE, "--full-filenames", cpu=0.6 * wanted / RATE)
        assert run.ledger["truncated"] == 0
        samples += run.samples
        whole += run.ledger["python"]
        lost += run.ledger["lost"]
        assert all(frames[0].label.startswith("process ") for frames, _ in run.stacks)
        legal.judge(run, wrong, below=1)
    figure("{:,} of {:,}".format(sum(wrong.values()), samples))
    assert wrong == {}
    if wanted == MANY:
        check_whole(measured, "two programs of two threads, " + python.name, whole, samples)
        assert lost == 0


FUNCTIONS = ("alpha", "beta", "gamma", "delta", "epsilon")
RATES = (99, 100, 1000)
CYCLES_MS = (1, 10, 100)
SECONDS = 4


def count_functions(run, pid, used, stolen):
    """The samples of each function.  USED is each function's CPU time by its own clock, over slightly more
    than the run. STOLEN is the stolen time of the same period, in seconds."""
    def ours(frames):
        return frames[0].label.startswith("process %d:" % pid)
    counts = {name: 0 for name in FUNCTIONS}
    for frames, count in run.stacks:
        for frame in frames if ours(frames) else ():
            if frame.name in counts:
                counts[frame.name] += count
    total = sum(counts.values())
    expected, most = (time * run.ledger["rate_hz"] for time in (sum(used), sum(used) + stolen))
    # Stolen time also loses ticks: of several that came due, only one arrives.
    assert 0.5 * expected < total < 1.05 * most + 4 * math.sqrt(most)
    return list(counts.values())


@pytest.mark.prove("truth")
@pytest.mark.proves("shares")
@pytest.mark.pythons(which=one_of_each_minor)
def test_shares(python, target, profile, tmp_path, sampled_shares):
    """The shares of a free-running loop and of one driven by a timer, at all rates at once."""
    cycle_ms = CYCLES_MS[find_pythons().index(python) % len(CYCLES_MS)]
    programs = {}
    for kind, length in (("free", cycle_ms), ("timer", 3.7)):
        path = str(tmp_path / kind)
        programs[kind] = (target(python, "shares.py", path, length, kind), Totals(path, 5))
    pids = [word for program, _ in programs.values() for word in ("-p", program.pid)]
    before = {kind: totals.load() for kind, (_, totals) in programs.items()}
    stolen_before = stolen_seconds()
    started = [profile.start(*pids, "-r", rate) for rate in RATES]
    for run in started:
        run.wait_sampling()
    wait_used(SECONDS, *(program.pid for program, _ in programs.values()))
    runs = [run.interrupt().load() for run in started]
    stolen = stolen_seconds() - stolen_before
    for kind, (program, totals) in programs.items():
        used = [end - start for end, start in zip(totals.load(), before[kind])]
        for run in runs:
            assert run.ledger["lost"] == 0
            sampled_shares(count_functions(run, program.pid, used, stolen), used)
