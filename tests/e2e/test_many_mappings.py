# SPDX-License-Identifier: BSD-2-Clause
"""Processes that have as many mappings as the kernel lets them, and change them all the time: whoever
can start a program can have others' profiles wait for it, unless what is read of one is bounded."""

import time

import pytest

from test_scale import use

pytest_plugins = ["embedding"]
pytestmark = pytest.mark.timed

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


def test_long_names(many_mappings, healthy, profile):
    """Nobody knows what it maps beyond what is read: which is said; the other one is known as ever."""
    program = many_mappings(ODD_FOLDERS, MAPPINGS)
    run = profile.start("-a", "-d", 2, "-r", 199)
    run.load()
    assert run.seconds < 2 + PATIENCE_S
    assert run.count_name("leaf") > 0
    assert run.ledger["unreadable_processes"] >= 1
    run = profile.attempt("record", "-p", program.pid, "-d", 1)
    assert "those that were read have no CPython" in run.stderr
    assert run.seconds < PATIENCE_S


@pytest.mark.alone
def test_many_that_change(many_mappings, healthy, profile):
    """It is looked at as seldom as it is slow to look at."""
    many_mappings(0, MAPPINGS, "churn")
    run = profile.start("-a", "-r", 99)
    run.wait_sampling()
    time.sleep(SETTLING_S)
    used = use(run.pid, SECONDS)
    run.interrupt().load()
    assert used < CPU_PART
    assert run.count_name("leaf") > 0


@pytest.fixture
def crowd(many_mappings):
    return [many_mappings(ODD_FOLDERS, CROWD_MAPPINGS) for _ in range(CROWD)]


def test_a_crowd(crowd, healthy, profile):
    """Who is looked at after all of these is known all the same, and sampling begins before that."""
    run = profile.start("-a", "-d", CROWD_SECONDS, "-r", 199)
    run.wait_sampling()
    assert time.monotonic() - run.started < END_S
    run.load()
    assert run.seconds < CROWD_SECONDS + PATIENCE_S
    assert run.count_name("leaf") > 0
    assert run.ledger["unreadable_processes"] >= CROWD


@pytest.mark.parametrize("said", ["BPF program loaded", "sampling "], ids=["before-sampling", "later"])
def test_interrupted_amid_a_crowd(crowd, profile, said):
    """Before all of them have been looked at."""
    run = profile.start("-a", "-v", "-r", 199)
    run.wait_said(said)
    before = time.monotonic()
    run.interrupt().load()
    assert time.monotonic() - before < END_S
