# SPDX-License-Identifier: BSD-2-Clause
"""Sampled page faults compared with the truth, and the cost of such a sample."""

import os
import sys
import time

import pytest

from answering import ask
from conftest import ROOT
from pythons import find_pythons

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import kernel_cost  # noqa: E402

PAGES = 10_000
TIMES = 10
SETTLED = 2  # seconds: for the first one, or somewhat longer, each sample identifies its code objects
DEPTH = 47  # three more frames: the module, the first function and the function that touches pages


@pytest.mark.prove("events")
@pytest.mark.parametrize("period", [1, 10, 100])
def test_all_periods_count_alike(any_python, target, profile, measured, period):
    program = target(any_python, "touch_pages.py", PAGES, DEPTH)
    run = profile.start("-p", program.pid, "-e", "page-faults:%d" % period)
    run.wait_sampling()
    ask(program.process, TIMES)
    run.interrupt().load()
    share = run.count_name("touch_here") / (PAGES * TIMES)
    measured("page faults on the line that touches pages, at a period of %d" % period,
             "%.2f %% of the pages" % (100 * share), "99 to 101 %")
    assert 0.99 <= share <= 1.01


@pytest.mark.alone
@pytest.mark.prove("events")
@pytest.mark.pythons(which=find_pythons)
def test_faults(python, target, profile, measured):
    program = target(python, "touch_pages.py", PAGES, DEPTH)
    ask(program.process, 1)
    with kernel_cost.statistics():
        run = profile.start("-p", program.pid, "-e", "page-faults:1")
        run.wait_sampling()
        settled, times = time.monotonic() + SETTLED, TIMES
        while time.monotonic() < settled:
            ask(program.process, 1)
            times += 1
        first = kernel_cost.read(run.pid)
        ask(program.process, TIMES)
        last = kernel_cost.read(run.pid)
        run.interrupt().load()
    event = run.ledger["per_event"]["page-faults"]
    faults = run.count_name("touch_here")
    share = faults / (PAGES * times)
    measured("page faults on the line that touches pages, " + python.name,
             "%.2f %% of the pages; %d skipped by the kernel, %d lost" % (
                 100 * share, event["left_out"], event["lost"]), "99 to 101 %")
    measured("a page fault at 50 frames, " + python.name,
             "%.2f us in the kernel" % ((last.nanoseconds - first.nanoseconds) / (last.runs - first.runs) / 1000),
             "2 us from 3.11 on, 6 us before")
    assert 0.99 <= share <= 1.01
