# SPDX-License-Identifier: BSD-2-Clause
"""Many processes at once: make bench-scale's load in small."""

import re
import time

import pytest

from agents import end, wait_for
from conftest import cpu_seconds

pytestmark = pytest.mark.timed

PROCESSES, THREADS, STACKS, BUSY_S, STARTS = 100, 10, 16, 0.4, 20
SECONDS = 6
SETTLING_S = 2  # the first scan, and the names of what runs already
RATE = 99

# On a machine that does nothing else it is a twentieth of that, and of the agent's, an eighth.
CPU_PART, AGENT_PART = 0.15, 0.04
MEMORY_MIB = 60


def peak_mib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


def use(pid, seconds):
    """The part of a CPU that a process takes, for so long from now on."""
    used, start = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - used) / (time.monotonic() - start)


@pytest.mark.alone
def test_a_crowd(target, profile, any_python):
    """Nothing is lost, each stack is explained, and the profiler stays small."""
    target(any_python, "crowd.py", PROCESSES, THREADS, STACKS, BUSY_S, STARTS)
    run = profile.start("-a", "-r", RATE, "-d", SECONDS)
    run.wait_sampling()
    time.sleep(SETTLING_S)
    used = use(run.pid, SECONDS - SETTLING_S - 1)
    peak = peak_mib(run.pid)
    run.load()
    assert used < CPU_PART
    assert peak < MEMORY_MIB
    ledger = run.ledger
    assert ledger["lost"] == 0
    assert ledger["untold_processes"] == ledger["processes_without_room"] == 0
    crowd = [(frames, count) for frames, count in run.stacks if "crowd.py" in frames[0].label]
    samples = sum(count for _, count in crowd)
    named = sum(count for frames, count in crowd if frames[-1].file)
    assert samples > 0.3 * BUSY_S * RATE * SECONDS
    assert named >= 0.95 * samples
    assert len({frames[0].label for frames, _ in crowd}) > PROCESSES / 4
    # Those that are forked meanwhile are walked as well.
    assert any(frame.name == "in_child" for frames, _ in crowd for frame in frames)


@pytest.mark.alone
def test_an_agent_beside_a_crowd(target, agent, store, any_python):
    """In two of its windows as they are by default, with a store."""
    target(any_python, "crowd.py", PROCESSES, THREADS, STACKS, BUSY_S, STARTS)
    run = agent("--listen", "off")
    wait_for(store.windows)
    used, peak = use(run.pid, 20), peak_mib(run.pid)
    end(run)
    assert run.status == 0, run.stderr
    assert used < AGENT_PART
    assert peak < MEMORY_MIB
    assert all(lost == 0 for _, _, lost, _ in store.check().values())
