# SPDX-License-Identifier: BSD-2-Clause
"""Processes with as many mappings as the kernel allows, which change them all the time.  Without a bound on
what is read of a process, any user could delay the profiles of others."""

import time

import pytest

from test_scale import use

pytest_plugins = ["embedding"]

MAPPINGS, ODD_FOLDERS = 60000, 15
SECONDS, SETTLING_S = 4, 2

# Each process of the crowd has more mappings than are read.  Reading the crowd takes about 3 s, and more
# than 4 s beside other work.
CROWD, CROWD_MAPPINGS, CROWD_SECONDS = 100, 1500, 10

# Beyond the requested duration: loading, steps without a bound, and the delays of a busy machine.  Reading
# all mappings of one process would take 9 s.
PATIENCE_S = 5

# The limit for Ctrl-C at any time, and for the start of sampling.  After that start Ctrl-C takes less.
END_S = 2

# An otherwise idle machine needs a fifth of that.  Without a bound it would be most of a CPU.
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
    """Mappings beyond the bound are not read, and the refusal says so.  The other process is profiled as usual."""
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
def test_many_changing_mappings(many_mappings, healthy, profile, measured):
    """The longer it takes to read a process, the less often that is done."""
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
    """A process that is read after the crowd is still identified.  Sampling begins before the crowd is read."""
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
    """Ctrl-C before all of them have been read."""
    run = profile.start("-a", "-v", "-r", 199)
    run.wait_said(said)
    before = time.monotonic()
    run.interrupt().load(None)
    assert time.monotonic() - before < END_S
