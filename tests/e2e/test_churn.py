# SPDX-License-Identifier: BSD-2-Clause
"""Threads and processes that come and go, many targets, the highest rate: the profiler stays small.

`make prove PARTS=churn` takes half an hour; what is in tier 2 sees that each kind is followed at all.
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

# From the moment that sampling begins, however long it takes: stacks, and what is sent, come to be as
# many as there is room for.
GROWTH_KB = 12 * 1024
# Each process is in the profile, and in what is written; three times what was measured.
GROWTH_KB_A_PROCESS = 4
# Of each process that is known, its root directory and its mounts.
FILES_A_PROCESS = 2
# Some have ended, and are not forgotten yet.
PROCESSES_AT_ONCE = 50
# What a child has not touched yet is in no memory, and the call that it returns from has no frame; four
# times what was measured.
ERRORS_A_PROCESS = 0.1

pytestmark = pytest.mark.timeout(2 * SECONDS + 300)


def size_of(pid):
    """Its memory, KiB, and its open files."""
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        memory = int(re.search(r"VmRSS:\s*(\d+) kB", status.read()).group(1))
    return memory, len(os.listdir("/proc/%d/fd" % pid))


def run_ns(pid):
    """CPU time of a process of one thread."""
    with open("/proc/%d/schedstat" % pid, encoding="ascii") as schedstat:
        return int(schedstat.read().split()[0])


def watch(run, seconds, is_enough=lambda: True):
    """What size_of a run is, again and again."""
    sizes = []
    until = time.monotonic() + seconds
    while time.monotonic() < until or not is_enough():
        assert time.monotonic() < until + PATIENCE
        sizes.append(size_of(run.pid))
        time.sleep(seconds / 10)
    return sizes


def check_size(run, sizes, measured):
    """It grows by what is recorded alone, however long that takes; SIZES: of it, one after the other."""
    memory = [kilobytes for kilobytes, _ in sizes]
    processes = len(by_process(run))
    most = GROWTH_KB + GROWTH_KB_A_PROCESS * processes
    measured("growth while %d processes come and go, KiB" % processes, max(memory) - memory[0], "< %d" % most)
    assert max(memory) - memory[0] < most, (processes, memory)
    files = [files for _, files in sizes]
    assert max(files) - files[0] < FILES_A_PROCESS * PROCESSES_AT_ONCE, files


def check_samples(run, measured):
    """Nothing is lost, and what is walked has its whole stack, but where a process begins."""
    ledger = run.ledger
    assert ledger["lost"] == ledger["untold_processes"] == ledger["processes_without_room"] == 0
    walked = run.samples - ledger["errors"]["not_known_yet"]
    least = whole_at_least(walked) - ERRORS_A_PROCESS * len(by_process(run))
    whole = ledger["python"] + ledger["no_python"]
    measured("whole stacks of %d" % walked, whole, ">= %d" % least)
    assert whole >= least, ledger


def seen_children(run):
    """How many processes were sampled in the millisecond of in_child(), which is five periods at least."""
    return sum(count(stacks, "in_child") > 0 for stacks in by_process(run).values())


@pytest.mark.prove("churn")
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


def test_what_comes_and_goes(any_python, target, profile, tmp_path):
    """Some of each kind is sampled, and all samples are accounted for."""
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
    # Thirty periods of each.
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
def test_brief_processes(any_python, profile, measured):
    """Each is followed, sampled and forgotten, but for what the profile has of it."""
    program = os.path.join(PROGRAMS, "brief_processes.py")
    run = profile.start("-s", "-r", RATE, command=[*any_python.command, program, BRIEF])
    run.wait_sampling()
    sizes = [size_of(run.pid)]
    while run.process.poll() is None:
        try:
            sizes.append(size_of(run.pid))
        except (OSError, AttributeError):
            break  # it ends
        time.sleep(0.2)
    run.load()
    check_size(run, sizes, measured)
    check_samples(run, measured)
    assert seen_children(run) >= whole_at_least(BRIEF)
