# SPDX-License-Identifier: BSD-2-Clause
"""Processes that have as many mappings as the kernel lets them, and change them all the time: whoever
can start a program can have others' profiles wait for it, unless what is read of one is bounded."""

import time

import pytest

from test_scale import use

pytest_plugins = ["embedding"]

MAPPINGS, ODD_FOLDERS = 60000, 15
SECONDS, SETTLING_S = 4, 2

# So many, each of which has more to tell than is read, take some three seconds to be looked through, and
# more than four beside other work.
CROWD, CROWD_MAPPINGS, CROWD_SECONDS = 100, 1500, 10

# Beyond what was asked for: loading, what is not bounded, and what a busy machine takes. Who reads all
# that one of them has to tell takes 9 seconds for that.
PATIENCE_S = 5

# What Ctrl-C takes, at any time; and that the first sample comes, from which on it takes less.
END_S = 2

# On a machine that does nothing else it is a fifth of that; without a bound, most of a CPU.
CPU_PART = 0.15


@pytest.fixture
def many_mappings(build, target):
    """many_mappings(FOLDERS, COUNT, ["churn"]): the target."""
    program = build("many_mappings.c")
    return lambda folders, count, *words: target.start([program, str(folders), str(count), *words])


@pytest.fixture
def healthy(any_python, target):
    return target(any_python, "busy.py")


@pytest.mark.parametrize("timely", [False, pytest.param(True, marks=pytest.mark.prove("cost"))])
def test_long_names(many_mappings, healthy, profile, measured, timely):
    """Nobody knows what it maps beyond what is read: which is said; the other one is known as ever."""
    program = many_mappings(ODD_FOLDERS, MAPPINGS)
    run = profile("-a", "-r", 199, cpu=1, of=[healthy.pid])
    assert run.count_name("leaf") > 0
    assert run.ledger["unreadable_processes"] >= 1
    run = profile.attempt("record", "-p", program.pid, "-d", 1)
    assert "those that were read have no CPython" in run.stderr
    if timely:
        measured("seconds until one of %d mappings is refused" % MAPPINGS, "%.1f" % run.seconds,
                 "< %d" % PATIENCE_S)
        assert run.seconds < PATIENCE_S


@pytest.mark.prove("cost")
@pytest.mark.alone
def test_many_that_change(many_mappings, healthy, profile, measured):
    """It is looked at as seldom as it is slow to look at."""
    many_mappings(0, MAPPINGS, "churn")
    run = profile.start("-a", "-r", 99)
    run.wait_sampling()
    time.sleep(SETTLING_S)
    used = use(run.pid, SECONDS)
    run.interrupt().load()
    measured("part of a CPU for a process that changes its %d mappings" % MAPPINGS, "%.3f" % used,
             "< %g" % CPU_PART)
    assert used < CPU_PART
    assert run.count_name("leaf") > 0


@pytest.fixture
def crowd(many_mappings):
    return [many_mappings(ODD_FOLDERS, CROWD_MAPPINGS) for _ in range(CROWD)]


@pytest.mark.prove("cost")
def test_a_crowd(crowd, healthy, profile, measured):
    """Who is looked at after all of these is known all the same, and sampling begins before that."""
    run = profile.start("-a", "-d", CROWD_SECONDS, "-r", 199)
    run.wait_sampling()
    began = time.monotonic() - run.started
    run.load()
    measured("seconds until it samples, of %d processes of %d mappings" % (CROWD, CROWD_MAPPINGS),
             "%.1f" % began, "< %d" % END_S)
    assert began < END_S
    assert run.seconds < CROWD_SECONDS + PATIENCE_S
    assert run.count_name("leaf") > 0
    assert run.ledger["unreadable_processes"] >= CROWD


@pytest.mark.prove("cost")
@pytest.mark.parametrize("said", ["BPF program loaded", "sampling "], ids=["before-sampling", "later"])
def test_interrupted_amid_a_crowd(crowd, profile, said):
    """Before all of them have been looked at."""
    run = profile.start("-a", "-v", "-r", 199)
    run.wait_said(said)
    before = time.monotonic()
    run.interrupt().load(None)
    assert time.monotonic() - before < END_S
