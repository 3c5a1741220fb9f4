# SPDX-License-Identifier: BSD-2-Clause
"""Time off the CPU: where each thread waits, for what, and for how long."""

import collections
import json
import os
import re
import subprocess
import time

import pytest

from conftest import cpu_seconds, wait_for
from folded import stacks

STEP_NS = 10 * 10 ** 6
OFF_CPU = ("-e", "off-cpu")
# clock_nanosleep, pselect6, select: on x86-64, then on aarch64.
SLEEPS = {"230", "270", "23", "115", "72"}
LOOPS = 5  # threads of waits.py that wait again and again, beside the main one


def threads_of(pid):
    """{thread: how often it has waited}"""
    found = {}
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, task), encoding="ascii") as file:
            found[int(task)] = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.MULTILINE)[1])
    return found


def system_call(pid, thread):
    """The number of the system call that THREAD sleeps in; "-1": it sleeps in none; "running"."""
    with open("/proc/%d/task/%d/syscall" % (pid, thread), encoding="ascii") as file:
        return file.read().split()[0]


@pytest.fixture
def record(profile, any_python, target, tmp_path):
    """record(FORMAT, ARGUMENT...): the path of a profile of waits.py, and its ledger.  The program's long sleep
    begins during the recording."""
    def run(format_name, *arguments):
        program = target(any_python, "waits.py")
        path, stats = str(tmp_path / "profile"), str(tmp_path / "stats.json")
        run = profile.start("-p", program.pid, "-f", format_name, "-o", path, "--stats", stats, *arguments,
                            files=False)
        run.wait_sampling()
        before = threads_of(program.pid)
        program.go()

        def has_waited():
            now = threads_of(program.pid)
            new = set(now) - set(before)
            return (len(new) == 1 and system_call(program.pid, *new) in SLEEPS and
                    sum(now[thread] > before[thread] + 60 for thread in before) >= LOOPS)
        wait_for(has_waited)
        run.interrupt().finish()
        assert run.status == 0, run.stderr
        with open(stats, encoding="utf-8") as file:
            return path, json.load(file)
    return run


def waits(path):
    """{(function of waits.py, reason): ns}"""
    found = collections.Counter()
    for frames, value in stacks(path):
        for frame in frames:
            if frame.name.endswith("_here") or frame.name == "sleep_long":
                found[frame.name, frames[-1].name] += value
    return found


def test_each_wait_has_its_place_and_reason(record, any_python):
    path, ledger = record("folded", *OFF_CPU)
    # time.sleep() was a select() up to 3.10.
    sleep = "[sleep]" if any_python.version >= (3, 11) else "[poll]"
    found = waits(path)
    for wait in (("sleep_here", sleep), ("read_here", "[read]"), ("poll_here", "[poll]"), ("lock_here", "[lock]"),
                 ("sleep_long", sleep)):
        assert found[wait] > 0, (wait, found)
    # Each of these sleeps lasts at least one step.
    assert found["sleep_here", sleep] >= 2 * STEP_NS
    event = ledger["per_event"]["off-cpu"]
    assert event["unit"] == "nanoseconds"
    assert event["events"] == event["samples"] + event["lost"]
    assert event["samples"] == event["python"] + event["no_python"] + sum(event["errors"].values())
    assert sum(value for _, value in stacks(path)) == event["value"]


SPIN = ("""import threading
def spin_here():
    while True: sum(range(1000))
thread = threading.Thread(target=spin_here)
thread.daemon = True
thread.start()
print('ready', flush=True)
spin_here()
""")


def test_waits_for_the_gil_have_their_own_reason(profile, any_python, target, tmp_path):
    program = target.start([*any_python.command, "-c", SPIN])
    path = tmp_path / "waits.folded"
    run = profile.start("-p", program.pid, "--off-cpu", "-o", path, files=False)
    run.wait_sampling()
    before = threads_of(program.pid)
    wait_for(lambda: all(count > before[thread] + 20 for thread, count in threads_of(program.pid).items()))
    run.interrupt().finish()
    assert run.status == 0, run.stderr
    assert waits(path)["spin_here", "[waiting for the GIL]"] > 0


def states_of(pid):
    """{thread: its state, and how often it was switched out}"""
    found = {}
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, task), encoding="ascii") as file:
            text = file.read()
        found[int(task)] = re.findall(r"^(?:State|\w*voluntary_ctxt_switches):\s+(\w+)", text, re.MULTILINE)
    return found


def falls_asleep(pid):
    """Whether all threads sleep, and have slept for the last 0.05 s."""
    before = states_of(pid)
    time.sleep(0.05)
    return all(state[0] == "S" for state in before.values()) and states_of(pid) == before


def asleep_waits(python):
    """What the threads of asleep.py wait for."""
    sleep = "[sleep]" if python.version >= (3, 11) else "[poll]"
    return {("sleep_here", sleep), ("queue_here", "[lock]"), ("read_here", "[read]"), ("poll_here", "[poll]"),
            ("lock_here", "[lock]")}


@pytest.mark.parametrize("options", [("--off-cpu", "-t"), ("--wall", "-t"), ("--off-cpu",)],
                         ids=["off-cpu", "wall", "processes"])
def test_threads_that_slept_before_and_never_wake(profile, python, target, tmp_path, options):
    """Each has its place, its reason, and the time of the whole recording."""
    program = target(python, "asleep.py")
    wait_for(lambda: falls_asleep(program.pid))
    path, stats = tmp_path / "waits.folded", tmp_path / "stats.json"
    run = profile.start("-p", program.pid, *options, "-d", "0.2", "-o", path,
                        "--stats", stats, files=False).finish()
    assert run.status == 0, run.stderr
    found = waits(path)
    assert set(found) == asleep_waits(python) | {("wake_here", "[read]")}
    assert len(set(found.values())) == 1 and all(found.values()), found
    ledger = json.loads(stats.read_text())
    event = ledger["per_event"]["off-cpu"]
    assert event["events"] == event["samples"] == event["python"] >= len(found)
    assert event["value"] == sum(value for _, value in stacks(path)) and not event["unmatched"]


def test_a_wait_ends_when_the_thread_wakes(profile, python, target, tmp_path):
    """The end of the recording adds no time to that wait."""
    program = target(python, "asleep.py")
    wait_for(lambda: falls_asleep(program.pid))
    path = tmp_path / "waits.folded"
    run = profile.start("-v", "-p", program.pid, "--off-cpu", "-o", path, files=False)
    run.wait_said("threads waited already")
    used = cpu_seconds(program.pid)
    program.go()
    wait_for(lambda: cpu_seconds(program.pid) > used + 0.05)
    run.interrupt().finish()
    assert run.status == 0, run.stderr
    found = waits(path)
    assert asleep_waits(python) | {("wake_here", "[read]")} <= set(found), found
    assert 0 < found["wake_here", "[read]"] < found["read_here", "[read]"]


def test_kernel_and_native_frames(record):
    """They stand between Python's frames and the reason.  Frames of the tracing itself are not shown."""
    path, _ = record("folded", *OFF_CPU, "-n", "-k")
    reads = [[frame.name for frame in frames] for frames, _ in stacks(path) if frames[-1].name == "[read]"]
    reads = [names for names in reads if "read_here" in names and any(name.endswith("_[k]") for name in names)]
    # A wait that began before the recording has no frames of the scheduler.
    assert any({"schedule_[k]", "__schedule_[k]"} & set(names) for names in reads), reads
    for names in reads:
        python = names.index("read_here")
        kernel = [name for name in names if name.endswith("_[k]")]
        assert not any("bpf" in name for name in kernel), names
        assert names[-1 - len(kernel):-1] == kernel and names.index(kernel[0]) > python


def test_beside_the_clock_in_pprof(record, require, tmp_path):
    path, ledger = record("pprof", *OFF_CPU, "-e", "cpu-clock", "-r", "999")
    text = subprocess.check_output(
        [require("go"), "tool", "pprof", "-top", "-unit=ns", "-sample_index=off_cpu", path],
        env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), stderr=subprocess.DEVNULL).decode("utf-8")
    assert "Type: off_cpu\n" in text
    assert re.search(r"Total samples = (\d+)ns", text)[1] == str(ledger["per_event"]["off-cpu"]["value"])
    assert set(ledger["per_event"]) == {"off-cpu", "cpu-clock"}


def test_time_on_the_run_queue_is_separate(record, any_python):
    path, ledger = record("folded", *OFF_CPU, "--split-runqueue")
    found = waits(path)
    sleep = "[sleep]" if any_python.version >= (3, 11) else "[poll]"
    assert found["sleep_here", sleep] > 0 and found["sleep_here", "[runnable, not running]"] > 0
    assert sum(value for _, value in stacks(path)) == ledger["per_event"]["off-cpu"]["value"]


def test_longer_waits_are_kept(record, any_python):
    path, _ = record("folded", *OFF_CPU, "--off-cpu-min", "1ms")
    assert waits(path)["sleep_here", "[sleep]" if any_python.version >= (3, 11) else "[poll]"] >= 2 * STEP_NS


def test_waits_to_write_and_for_a_page(any_python, profile, target, tmp_path):
    """Both go on when the recording ends.  The thread that wants the page keeps the GIL."""
    program = target(any_python, "stuck.py")
    path = tmp_path / "waits.folded"
    run = profile.start("-p", program.pid, "--off-cpu", "-o", path, files=False)
    run.wait_sampling()
    program.go()
    # In no system call, but asleep: in the fault.
    wait_for(lambda: system_call(program.pid, program.pid) == "-1")
    run.interrupt().finish()
    assert run.status == 0, run.stderr
    found = waits(path)
    assert found["write_here", "[write]"] > 0 and found["touch_here", "[page fault]"] > 0, found


def test_brief_waits_are_left_out(record):
    path, ledger = record("folded", *OFF_CPU, "--off-cpu-min", "1h")
    assert not stacks(path)
    event = ledger["per_event"]["off-cpu"]
    assert event["value"] == 0 and event["brief"] > 0 and event["samples"] > 0


def test_text_has_seconds(record):
    path, ledger = record("text", *OFF_CPU)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert re.search(r"self +total +seconds +function", text)
    seconds = float(re.search(r" ([\d.]+)  sleep_here ", text)[1])
    assert 2 * STEP_NS / 1e9 <= seconds <= ledger["per_event"]["off-cpu"]["value"] / 1e9


def test_wall_combines_cpu_time_and_waits(record, any_python):
    path, ledger = record("folded", "-i", "-r", "999")
    found = stacks(path)
    assert sum(value for _, value in found) == sum(event["value"] for event in ledger["per_event"].values())
    assert set(ledger["per_event"]) == {"cpu-clock", "off-cpu"}
    assert waits(path)["read_here", "[read]"] > 0
    on_cpu = sum(value for frames, value in found if not frames[-1].name.startswith("["))
    assert on_cpu % ledger["per_event"]["cpu-clock"]["period"] == 0


@pytest.mark.parametrize("arguments, said", [
    (("-p", os.getpid(), "-e", "off-cpu:2"), "off-cpu has no count: each wait is measured"),
    (("-p", os.getpid(), "--wall", "-e", "page-faults"), "--wall has CPU time and off-cpu as one"),
    (("-p", os.getpid(), "--idle", "-e", "page-faults"), "--wall has CPU time and off-cpu as one"),
    (("-p", os.getpid(), "--split-runqueue"), "--split-runqueue needs --off-cpu"),
    (("agent", "--listen", "127.0.0.1:0", "--off-cpu-min", "1ms"), "--off-cpu-min needs --off-cpu"),
], ids=["count", "wall", "idle", "split", "min"])
def test_refused_options(profile, arguments, said):
    run = profile.attempt(*arguments)
    assert run.status == 2 and said in run.stderr
