# SPDX-License-Identifier: BSD-2-Clause
"""Many processes at once: a small version of make bench-scale's load."""

import os
import re
import shutil
import subprocess
import time

import pytest

from agents import end
from conftest import cpu_seconds, wait_for

pytestmark = pytest.mark.prove("cost")

PROCESSES, THREADS, STACKS, BUSY_S, STARTS = 100, 10, 16, 0.4, 20
SECONDS = 6
SETTLING_S = 2  # the first scan, and reading the names of processes that run already
RATE = 99

# Parts of a CPU. An idle machine needs a twentieth of CPU_PART, and an eighth of AGENT_PART.
CPU_PART, AGENT_PART = 0.15, 0.04
MEMORY_MIB = 60

# CPU time for each short process that is not Python: an idle machine needs a third of it. And wake-ups of
# the profiler for each process: unless prevented, each file that it maps would cause one.
STARTS_SHORT = 100
SHORT_S = 0.0002
WAKES_SHORT = 4


def peak_mib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024


def use(pid, seconds):
    """The part of a CPU that a process uses during the next SECONDS."""
    used, start = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - used) / (time.monotonic() - start)


def wakes(pid):
    """How often its threads have blocked, and were woken."""
    count = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, thread), encoding="ascii") as status:
            count += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M)[1])
    return count


@pytest.mark.alone
def test_a_crowd(target, profile, any_python, measured):
    """No sample is lost, at least 95 % have names, and the profiler stays small."""
    target(any_python, "crowd.py", PROCESSES, THREADS, STACKS, BUSY_S, STARTS)
    run = profile.start("-a", "-r", RATE, "-d", SECONDS)
    run.wait_sampling()
    time.sleep(SETTLING_S)
    used = use(run.pid, SECONDS - SETTLING_S - 1)
    peak = peak_mib(run.pid)
    run.load()
    measured("record -a beside %d processes of %d threads, part of a CPU" % (PROCESSES, THREADS),
             "%.3f" % used, "< %g" % CPU_PART)
    measured("its memory, MiB", "%.0f" % peak, "< %d" % MEMORY_MIB)
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
    # Processes forked during the recording are walked as well.
    assert any(frame.name == "in_child" for frames, _ in crowd for frame in frames)


def start_short_ones(path, seconds):
    """Starts STARTS_SHORT programs per second that end within 0.2 s. Returns their number."""
    end, started = time.monotonic() + seconds, []
    while time.monotonic() < end:
        started.append(subprocess.Popen([path, "0.15"]))
        time.sleep(1 / STARTS_SHORT)
    for program in started:
        program.wait()
    return len(started)


@pytest.mark.alone
def test_short_programs_without_python(profile, tmp_path, measured):
    """Short programs that are not Python cost next to nothing each."""
    path = shutil.copy("/bin/sleep", str(tmp_path))
    run = profile.start("-a", "-r", RATE)
    run.wait_sampling()
    time.sleep(SETTLING_S)
    before = use(run.pid, SECONDS)
    used, woken, begin = cpu_seconds(run.pid), wakes(run.pid), time.monotonic()
    starts = start_short_ones(path, SECONDS)
    used = cpu_seconds(run.pid) - used - before * (time.monotonic() - begin)
    woken = wakes(run.pid) - woken
    run.interrupt().load()
    measured("CPU time per short process that is no Python, microseconds", "%.0f" % (1e6 * used / starts),
             "< %.0f" % (1e6 * SHORT_S))
    measured("wake-ups for each", "%.1f" % (woken / starts), "< %d" % WAKES_SHORT)
    assert used / starts < SHORT_S, (used, starts, before)
    assert woken / starts < WAKES_SHORT


@pytest.mark.alone
def test_an_agent_beside_a_crowd(target, agent, store, any_python, measured):
    """The agent with a store, over two windows of the default length."""
    target(any_python, "crowd.py", PROCESSES, THREADS, STACKS, BUSY_S, STARTS)
    run = agent("--listen", "off")
    wait_for(store.windows)
    used, peak = use(run.pid, 20), peak_mib(run.pid)
    end(run)
    assert run.status == 0, run.stderr
    measured("an agent beside the same processes, part of a CPU", "%.3f" % used, "< %g" % AGENT_PART)
    assert used < AGENT_PART
    assert peak < MEMORY_MIB
    assert all(lost == 0 for _, _, lost, _ in store.check().values())
