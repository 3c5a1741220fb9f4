# SPDX-License-Identifier: BSD-2-Clause
"""Compares off-CPU and wall time with the truth, and measures the cost."""

import collections
import os
import statistics
import sys
import time

import pytest

from conftest import ROOT
from legal import DeepLegal, Legal
from pythons import FREE_THREADED, find_pythons, one_of_each_minor
from test_events_truth import SETTLED
from test_gil import GIL_SINCE, those_that_tell
from test_off_cpu import states_of

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import kernel_cost  # noqa: E402

SECONDS = int(os.environ.get("WAITING_SECONDS", "30"))
ROUNDS = 5
ROUND_SECONDS = 2
NAP_NS = 50 * 10 ** 6
LIVES = 8  # threads of lives.py beside the main one


@pytest.mark.alone
@pytest.mark.prove("waiting")
@pytest.mark.pythons(which=find_pythons)
def test_the_wall_time_of_a_thread_is_its_lifetime(python, target, profile, measured):
    program = target(python, "lives.py")
    run = profile("-p", program.pid, "--wall", "-t", "-r", 999, "-d", SECONDS)
    times = collections.Counter()
    reasons = collections.defaultdict(set)
    names = {}
    for frames, value in run.stacks:
        thread = frames[0].label
        times[thread] += value
        for frame in frames:
            if frame.name and frame.name.endswith("_here"):
                names[thread] = frame.name
                reasons[frame.name].add(frames[-1].label)
    life = run.ledger["duration_s"] * 1e9
    shares = {names[thread]: value / life for thread, value in times.items() if thread in names}
    worst = max(shares.values(), key=lambda share: abs(share - 1))
    measured("wall time of the thread that is furthest from its life, " + python.name,
             "%.2f %%" % (100 * worst), "99 to 101 %")
    assert len(shares) == LIVES
    assert all(0.99 <= share <= 1.01 for share in shares.values()), shares
    gil = "[waiting for the GIL]"
    told = python.version >= (3, 7) and python.kind != FREE_THREADED
    assert (gil in reasons["spin_here"]) == told, reasons["spin_here"]


@pytest.mark.alone
@pytest.mark.prove("waiting")
@pytest.mark.pythons(which=one_of_each_minor)
def test_the_time_of_naps_is_exact(python, target, profile, measured):
    program = target(python, "naps.py")
    run = profile.start("-p", program.pid, "--off-cpu")
    run.wait_sampling()
    program.go()
    truth = int(program.process.stdout.readline())
    run.interrupt().load()
    unmatched = run.ledger["per_event"]["off-cpu"]["unmatched"]
    error = abs(run.count_name("nap_here") + unmatched - truth) / 1e6
    measured("time of 20 naps of 50 ms, from the program's own clock, " + python.name,
             "%.2f ms, with %.1f ms unmatched" % (error, unmatched / 1e6), "1 ms, with less than two naps unmatched")
    assert error <= 1 and unmatched < 2 * NAP_NS


@pytest.mark.alone
@pytest.mark.prove("waiting")
def test_the_time_on_the_run_queue_is_the_kernels(any_python, target, profile, measured):
    program = target(any_python, "queued.py")
    rival = target.start([*any_python.command, "-c", "print('ready', flush=True)\nwhile True: pass"])
    for pid in program.pid, rival.pid:
        os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
    run = profile.start("-p", program.pid, "--off-cpu")
    run.wait_sampling()
    program.go()
    truth = int(program.process.stdout.readline())
    run.interrupt().load()
    queued = sum(value for frames, value in run.stacks if frames[-1].label == "[runnable, not running]" and
                 "queue_here" in [frame.name for frame in frames])
    # What is unmatched has the time on the CPU up to the next wait, too.
    unmatched = run.ledger["per_event"]["off-cpu"]["unmatched"]
    error = max(queued - truth, truth - queued - unmatched, 0) / 1e6
    measured("time on the run queue, from the kernel's own count of %.0f ms" % (truth / 1e6),
             "%.2f ms, with %.1f ms unmatched" % (error, unmatched / 1e6), "1 ms")
    # The reads of the truth may be preempted, too, for some milliseconds.
    assert error <= 5 and queued


def switches_of(pid):
    return sum(int(count) for _, *counts in states_of(pid).values() for count in counts)


@pytest.mark.alone
@pytest.mark.prove("waiting")
@pytest.mark.parametrize("threads", [1, 12])
def test_the_cost_of_switches(any_python, target, profile, measured, threads):
    """Only reported.  Each thread wakes some 900 times per second."""
    program = target(any_python, "gil.py", *["sleep_here"] * threads)
    with kernel_cost.statistics():
        run = profile.start("-p", program.pid, "--off-cpu")
        run.wait_sampling()
        time.sleep(SETTLED)
        switches, cost, begin = switches_of(program.pid), kernel_cost.read(run.pid, kernel_cost.TRACING), time.monotonic()
        time.sleep(ROUND_SECONDS)
        seconds = time.monotonic() - begin
        spent = kernel_cost.read(run.pid, kernel_cost.TRACING).nanoseconds - cost.nanoseconds
        rate = (switches_of(program.pid) - switches) / seconds
        run.interrupt().load()
    measured("BPF run time of --off-cpu at {:,.0f} switches a second".format(rate),
             "%.2f %% of a CPU" % (100 * spent / 1e9 / seconds), "0.3 % at 1,000, 3 % at 10,000")


@pytest.mark.alone
@pytest.mark.prove("waiting")
def test_the_cost_for_other_processes(any_python, target, profile, measured):
    """Only reported."""
    idle = target(any_python, "asleep.py")
    program = target(any_python, "ping_pong.py")
    with kernel_cost.statistics():
        run = profile.start("-p", idle.pid, "--off-cpu")
        run.wait_sampling()
        before = kernel_cost.read(run.pid, kernel_cost.TRACING)
        trips(program, ROUND_SECONDS)
        after = kernel_cost.read(run.pid, kernel_cost.TRACING)
        run.interrupt().load()
    measured("a switch between threads of other processes with --off-cpu",
             "%.2f us" % ((after.nanoseconds - before.nanoseconds) / (after.runs - before.runs) / 1000), "0.1 us")


def trips(program, seconds):
    """Round trips per CPU second, over SECONDS."""
    def read():
        program.go()
        count, used = program.process.stdout.readline().split()
        return int(count), float(used)
    first = read()
    time.sleep(seconds)
    last = read()
    return (last[0] - first[0]) / (last[1] - first[1])


@pytest.mark.alone
@pytest.mark.prove("waiting")
@pytest.mark.pythons(which=one_of_each_minor)
def test_ping_pong_loses_nothing(python, target, profile, measured):
    """The cost is only reported."""
    program = target(python, "ping_pong.py")
    # On several CPUs, waking another CPU would be most of a trip.
    for thread in states_of(program.pid):
        os.sched_setaffinity(thread, {max(os.sched_getaffinity(0))})
    without, beside, ledgers = [], [], []
    for _ in range(ROUNDS):
        without.append(trips(program, ROUND_SECONDS))
        run = profile.start("-p", program.pid, "--off-cpu")
        run.wait_sampling()
        beside.append(trips(program, ROUND_SECONDS))
        ledgers.append(run.interrupt().load().ledger["per_event"]["off-cpu"])
    unmatched = sum(ledger["unmatched"] for ledger in ledgers)
    measured("ping-pong with --off-cpu, " + python.name,
             "keeps %.0f %% of %s round trips a CPU second; %s waits walked in %d s, %.3f %% of the time unmatched" % (
                 100 * statistics.median(beside) / statistics.median(without),
                 "{:,.0f}".format(statistics.median(without)),
                 "{:,}".format(sum(ledger["samples"] for ledger in ledgers)), ROUNDS * ROUND_SECONDS,
                 100 * unmatched / sum(ledger["value"] for ledger in ledgers)),
             "at least 90 %; 0 unmatched where the kernel reports each switch")
    assert all(ledger["lost"] == 0 and ledger["unmatched"] <= ledger["value"] / 100 for ledger in ledgers)


def interpreters_file(program, python):
    """The file with the interpreter's functions, by its path as PROGRAM sees it."""
    with open("/proc/%d/maps" % program.pid, encoding="utf-8") as maps:
        libraries = [line.split()[-1] for line in maps if "libpython" in line]
    path = libraries[0] if libraries else os.readlink("/proc/%d/exe" % program.pid)
    return path[len(python.root):] if python.root and path.startswith(python.root) else path


@pytest.mark.prove("waiting")
@pytest.mark.pythons(which=one_of_each_minor)
@pytest.mark.parametrize("show", ["cpu-clock", "off-cpu", "uprobe"])
def test_no_impossible_stacks_beside_other_events(python, target, profile, measured, show):
    """The clock interrupts walks for context switches, page faults and calls."""
    program, busy = target(python, "deep.py"), target(python, "ping_pong.py")
    legal = {program.pid: DeepLegal(python, roots=("<module>", "work")),
             busy.pid: Legal(python, "ping_pong.py", roots=("<module>", "answer", "ask"))}
    call = "uprobe:%s:PyEval_SaveThread" % interpreters_file(busy, python)
    run = profile("-p", program.pid, "-p", busy.pid, "-e", "cpu-clock", "-e", "off-cpu", "-e", "page-faults:1",
                  "-e", call, "--show", call if show == "uprobe" else show, "-r", 9999, "--full-filenames", cpu=3)
    wrong, judged = {}, run.stacks[:]
    for pid in legal:
        # The innermost frame of a wait is its reason.
        run.stacks[:] = [(frames[:-1] if show == "off-cpu" else frames, count) for frames, count in judged
                         if frames[0].label.startswith("process %d:" % pid)]
        assert run.stacks or show == "uprobe"
        legal[pid].judge(run, wrong, below=1)
    event = run.ledger["per_event"][call if show == "uprobe" else show]
    measured("impossible stacks of %s beside the other events, %s" % (show, python.name),
             "%d of %s" % (sum(wrong.values()), "{:,}".format(event["samples"])), "0")
    assert wrong == {} and event["samples"] and run.ledger["per_event"][call]["samples"]


@pytest.mark.alone
@pytest.mark.prove("waiting")
@pytest.mark.pythons(which=those_that_tell)
def test_those_that_keep_the_gil_are_blamed(python, target, profile, measured):
    program = target(python, "gil.py", "keep_here", "spin_here", "release_here", "sleep_here")
    run = profile("-p", program.pid, "--gil-blame", "-r", 999, "-d", 5)
    blamed = collections.Counter()
    for frames, value in run.stacks:
        blamed.update({frame.name: value for frame in frames if frame.name.endswith("_here")})
    total = sum(blamed.values())
    share = (blamed["keep_here"] + blamed["spin_here"]) / total
    measured("blame of the two threads that keep the GIL, of four, " + python.name,
             "%.1f %%; %.1f s of waiting in 5 s" % (100 * share, total / 1e9), "at least 95 %")
    assert share >= 0.95 and blamed["keep_here"] and blamed["spin_here"]
