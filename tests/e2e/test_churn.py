# SPDX-License-Identifier: BSD-2-Clause
"""The profiler stays small with threads and processes that come and go, many targets and the highest rate.

`make prove PARTS=churn` takes half an hour.  The tests in tier 2 only check that each kind is followed.
"""

import os
import re
import sys
import time

import pytest

from conftest import PATIENCE, PROGRAMS, wait_for, whole_at_least
from test_following import by_process, count

sys.path.insert(0, PROGRAMS)
from totals import Totals  # noqa: E402

SECONDS = int(os.environ.get("CHURN_SECONDS", "6"))
RATE = 9999
CROWD = 200
BRIEF = max(5000, 50 * SECONDS)
THREADS = 1000

# Allowed growth since sampling began, for any duration: the buffers for stacks and records fill up to their
# limits.
GROWTH_KB = 12 * 1024
# Each process stays in the profile and in the output; three times the measured size.
GROWTH_KB_A_PROCESS = 4
# Each known process has two open files: its root directory and its mounts.
FILES_A_PROCESS = 2
# Includes ended processes that are not forgotten yet.
PROCESSES_AT_ONCE = 50
# A new child's untouched pages are not mapped, and it has no frame while it returns from fork; four times
# the measured number.
ERRORS_A_PROCESS = 0.1

pytestmark = pytest.mark.timeout(2 * SECONDS + 300)


def size_of(pid):
    """The process's memory in KiB and its number of open files."""
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        memory = int(re.search(r"VmRSS:\s*(\d+) kB", status.read()).group(1))
    return memory, len(os.listdir("/proc/%d/fd" % pid))


def run_ns(pid):
    """CPU time of a single-threaded process."""
    with open("/proc/%d/schedstat" % pid, encoding="ascii") as schedstat:
        return int(schedstat.read().split()[0])


def watch(run, seconds, is_enough=lambda: True):
    """The sizes of a run over time: size_of() ten times in SECONDS, and on until IS_ENOUGH."""
    sizes = []
    until = time.monotonic() + seconds
    while time.monotonic() < until or not is_enough():
        assert time.monotonic() < until + PATIENCE
        sizes.append(size_of(run.pid))
        time.sleep(seconds / 10)
    return sizes


def check_size(run, sizes, measured):
    """The profiler grows only by the recorded processes.  SIZES are its sizes over time."""
    memory = [kilobytes for kilobytes, _ in sizes]
    processes = len(by_process(run))
    most = GROWTH_KB + GROWTH_KB_A_PROCESS * processes
    measured("growth while %d processes come and go, KiB" % processes, max(memory) - memory[0], "< %d" % most)
    assert max(memory) - memory[0] < most, (processes, memory)
    files = [files for _, files in sizes]
    assert max(files) - files[0] < FILES_A_PROCESS * PROCESSES_AT_ONCE, files


def check_samples(run, measured):
    """No sample is lost, and walked stacks are whole, except at the start of a process."""
    ledger = run.ledger
    assert ledger["lost"] == ledger["untold_processes"] == ledger["processes_without_room"] == 0
    walked = run.samples - ledger["errors"]["not_known_yet"]
    least = whole_at_least(walked) - ERRORS_A_PROCESS * len(by_process(run))
    whole = ledger["python"] + ledger["no_python"]
    measured("whole stacks of %d" % walked, whole, ">= %d" % least)
    assert whole >= least, ledger


def seen_children(run):
    """The number of processes sampled in in_child(), which lasts a millisecond, at least five periods."""
    return sum(count(stacks, "in_child") > 0 for stacks in by_process(run).values())


@pytest.fixture
def many_pids():
    """No PID is used twice meanwhile: the profile would show two processes as one."""
    path = "/proc/sys/kernel/pid_max"
    with open(path, encoding="ascii") as file:
        before = file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write("4194304")
    yield
    with open(path, "w", encoding="ascii") as file:
        file.write(before)


@pytest.mark.prove("churn")
@pytest.mark.usefixtures("many_pids")
def test_threads_and_processes(any_python, target, profile, tmp_path, measured):
    program = target(any_python, "churn.py", 0, tmp_path / "ended")
    ended = Totals(str(tmp_path / "ended"), 2)
    run = profile.start("-p", program.pid, "-s", "-r", RATE)
    run.wait_sampling()
    threads, children = ended.load()
    sizes = watch(run, SECONDS, lambda: ended.load()[0] - threads >= THREADS)
    children = ended.load()[1] - children
    run.interrupt().load()
    check_size(run, sizes, measured)
    check_samples(run, measured)
    assert run.count_name("spin") > 0
    assert seen_children(run) >= whole_at_least(children)


def test_new_threads_and_processes_are_sampled(any_python, target, profile, tmp_path):
    """Threads and children are sampled, and all samples are accounted for."""
    program = target(any_python, "churn.py", 20, tmp_path / "ended")
    ended = Totals(str(tmp_path / "ended"), 2)
    run = profile.start("-p", program.pid, "-s", "-r", 999)
    run.wait_sampling()
    threads, children = ended.load()
    wait_for(lambda: ended.load()[0] - threads >= 400 and ended.load()[1] - children >= 100)
    run.interrupt().load()
    processes = by_process(run)
    assert count(processes[program.pid], "spin")
    assert any(count(stacks, "in_child") for pid, stacks in processes.items() if pid != program.pid)
    assert run.ledger["processes_without_room"] == 0


@pytest.mark.prove("churn")
def test_many_targets(any_python, target, profile):
    program = target(any_python, "churn.py", CROWD)
    pids = ",".join(map(str, [program.pid] + program.said))
    run = profile.start("-p", pids, "-r", RATE)
    run.wait_sampling()
    sizes = watch(run, 1)
    # Each process runs for thirty periods.
    ends = {pid: run_ns(pid) + 3e6 for pid in program.said}
    deadline = time.monotonic() + PATIENCE
    while any(run_ns(pid) < end for pid, end in ends.items()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    program.end()
    run.load()
    assert len(program.said) == CROWD
    assert sizes[-1][1] < FILES_A_PROCESS * CROWD + 100
    processes = by_process(run)
    assert [pid for pid in program.said if not count(processes.get(pid, []), "spin")] == []
    assert run.ledger["lost"] == 0


@pytest.mark.prove("churn")
@pytest.mark.usefixtures("many_pids")
def test_brief_processes(any_python, profile, measured):
    """Each process is followed, sampled and forgotten, except for its part of the profile."""
    program = os.path.join(PROGRAMS, "brief_processes.py")
    run = profile.start("-s", "-r", RATE, command=[*any_python.command, program, BRIEF])
    run.wait_sampling()
    sizes = [size_of(run.pid)]
    while run.process.poll() is None:
        try:
            sizes.append(size_of(run.pid))
        except (OSError, AttributeError):
            break  # the run is ending
        time.sleep(0.2)
    run.load()
    check_size(run, sizes, measured)
    check_samples(run, measured)
    assert seen_children(run) >= whole_at_least(BRIEF)
