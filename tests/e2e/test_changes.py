# SPDX-License-Identifier: BSD-2-Clause
"""Targets that change while they are profiled: reused addresses, exec, ending threads and processes."""

import os
import re

import pytest

from conftest import PROGRAMS, wait_for, wait_used
from legal import BRIEF, briefly_and_long
from pythons import FREE_THREADED, JIT, find_pythons, own_and_fetched_pythons

GONE = "[code object gone before it was read]"
UNREADABLE = "[code object not readable]"


def with_a_heap_of_objects():
    """Pythons that reuse freed memory at once.  Free-threaded builds do not."""
    return [python for python in own_and_fetched_pythons() if python.kind != FREE_THREADED]


@pytest.mark.prove("truth")
@pytest.mark.proves("code churn")
@pytest.mark.pythons(which=with_a_heap_of_objects)
def test_a_reused_address(python, target, profile, measured):
    """Two functions take turns of 2 and 18 ms at one address: 10 % and 90 % of the CPU time.

    At this rate and depth, BPF tells them apart only after user space has noticed a reuse.  With longer
    turns on a busy machine, it would stop in between."""
    program = target(python, "reuse.py", "elsewhere", 0.002, 0.018, 30)
    program.go()
    run = profile("-p", program.pid, "-r", 9999, cpu=5)
    brief, heavy = run.count_name("brief"), run.count_name("heavy")
    assert run.ledger["errors"]["code_replaced"] == 0
    assert run.ledger["name_unknown"] <= 0.005 * run.samples
    share = brief / (brief + heavy)
    measured("10 %% of the time at another's address, %s" % python.name, "%.1f %%" % (100 * share),
             "5 to 15 %")
    assert 0.05 < share < 0.15


@pytest.mark.prove("truth")
@pytest.mark.proves("code churn")
@pytest.mark.pythons(which=with_a_heap_of_objects)
@pytest.mark.parametrize("kind", ["alike", "elsewhere"])
def test_an_address_reused_for_a_moment(python, kind, target, profile, measured):
    """20 ms in one function, before and after which another function runs for seconds at the same address."""
    program = target(python, "reuse.py", kind, 0.02, 3)
    program.go()
    run = profile.start("-p", program.pid, "-r", 997)
    run.wait_sampling()
    wait_used(4, program.pid)
    run.interrupt().load()
    found = run.count_name("brief")
    measured("samples of 20 ms at another's address (%s), %s" % (kind, python.name), found, "5 to 40")
    assert 5 < found < 40
    assert run.ledger["errors"]["code_replaced"] == 0
    assert run.count_name("heavy") > 0.9 * run.samples


@pytest.mark.prove("truth")
@pytest.mark.proves("code churn")
@pytest.mark.pythons(which=with_a_heap_of_objects)
def test_a_reused_address_in_deep_stacks(python, target, profile, measured):
    """Two functions take turns of 300 ms.  Telling them apart would take more than half of a CPU.

    The first function has its name until it is replaced.  After that, neither has a name."""
    program = target(python, "reuse.py", "elsewhere", 0.3, 0.3, 150 if python.version < (3, 12) else 900)
    program.go()
    run = profile("-p", program.pid, "-r", 9999, cpu=4)
    named = run.count_name("brief"), run.count_name("heavy")
    # Samples are either whole or known to have a replaced code object.
    assert run.ledger["errors"]["code_replaced"] + run.ledger["python"] >= 0.99 * run.samples
    # The other function has a name only in the first moment, when BPF tells all code objects apart.
    measured("samples with the name of what was first at an address, %s" % python.name,
             "%.1f %%" % (100 * max(named) / run.samples), "<= 30 %")
    assert min(named) <= 0.1 * run.samples
    assert max(named) <= 0.3 * run.samples


@pytest.mark.prove("truth")
@pytest.mark.proves("code churn")
@pytest.mark.pythons(which=with_a_heap_of_objects)
def test_an_address_reused_during_its_check(python, target, profile, measured):
    """Only the check in user space tells the functions apart.  It takes some milliseconds for all known code
    objects, and samples from that time may get the wrong name."""
    program = target(python, "hand_over.py")
    run = profile.start("-p", program.pid, "-r", 9999)
    run.wait_sampling()
    program.go()
    run.load()
    assert run.ledger["code_objects"] > 5000
    # Samples in 3 ms, and one more for each wait for a CPU.
    former, most = run.count_name("former"), 3e6 / run.ledger["periods"]["shortest_ns"] + 10
    measured("samples with the name of the former function, %s" % python.name, former, "<= %d" % most)
    assert former <= most
    assert run.count_name("latter") > 0.5 * 0.8 * 9999
    # This fails if the code object was freed before user space got a CPU to read it.
    assert run.ledger["errors"]["code_replaced"] > 0


SHORT = re.compile(r"function_(\d)")


def why_not(caller, frame, is_leaf, jit):
    """Why FRAME cannot be from short_lived.py, or None."""
    match = SHORT.fullmatch(frame.name)
    if not match:
        known = frame.file in ("short_lived.py", "[unknown]") or frame.name == "<module>"
        return None if frame.name.startswith("[code object ") or known else "another's file"
    number = int(match.group(1))
    if frame.file != "short_%d.py" % number:
        return "another's file"
    first = 10 * number + 1
    if frame.line is None and is_leaf and jit:
        return None
    if frame.line not in ((first, first + 1, first + 4) if is_leaf else (first + 4,)):
        return "another's line"
    if caller.name == "<module>" and (caller.file, caller.line) != (frame.file, first + 5):
        return "another's caller"
    return None


@pytest.mark.proves("code churn")
@briefly_and_long()
def test_short_lived_code(python, target, profile, cpu):
    """The name, file and lines of each frame belong together."""
    run = profile("-p", target(python, "short_lived.py").pid, "-r", 3999, cpu=cpu)
    wrong, named = {}, 0
    for frames, count in run.stacks:
        for caller, frame in zip(frames, frames[1:]):
            reason = why_not(caller, frame, frame is frames[-1], python.kind == JIT)
            if reason:
                key = reason, caller.label, frame.label
                wrong[key] = wrong.get(key, 0) + count
            named += count * bool(SHORT.fullmatch(frame.name))
    assert wrong == {}
    # BPF copied the code objects while they ran.  Otherwise most would have no name.
    assert named > 0
    if cpu > BRIEF:
        assert run.ledger["unnamed_code_objects"] <= 0.005 * run.ledger["code_objects"]
        assert named > 0.05 * run.samples


RIGHT = {
    "name": lambda number, frame: frame.name == "function_%d" % number,
    "file": lambda number, frame: frame.file == "dropped_%d.py" % number,
    "method": lambda number, frame: frame.name in ("Class%d.function" % number, "function"),
}


@pytest.mark.proves("code churn")
@pytest.mark.parametrize("kind", sorted(RIGHT))
@briefly_and_long()
def test_code_at_addresses_of_freed_code(python, kind, target, profile, cpu):
    """The caller's line shows which function runs.  Up to 3.11 only the names tell the functions apart."""
    run = profile("-p", target(python, "dropped.py", 0.0003, kind).pid, "-r", 3999, cpu=cpu)
    wrong, called = {}, 0
    for frames, count in run.stacks:
        for caller, frame in zip(frames, frames[1:]):
            if (caller.name, caller.file) != ("call", "calls.py"):
                continue
            called += count
            if frame.name not in (GONE, UNREADABLE) and not RIGHT[kind](caller.line, frame):
                key = caller.label, frame.label
                wrong[key] = wrong.get(key, 0) + count
    assert wrong == {} and called > 0
    if cpu > BRIEF:
        assert called > 0.2 * run.samples
        # Some copies are dropped if user space gets no CPU to empty the ring buffer.
        assert run.ledger["name_unknown"] <= 0.01 * called
        assert run.ledger["errors"]["code_replaced"] == 0


CALLED_FROM = {"second": 2, "sixth": 6}


@pytest.mark.proves("code churn")
@briefly_and_long(3)
def test_code_that_differs_only_in_its_lines(python, target, profile, cpu):
    """The callee shows which code runs.  Up to 3.11 only the bytes of the line tables tell it apart."""
    run = profile("-p", target(python, "turns.py", 0.05).pid, "-r", 1999, cpu=cpu)
    wrong, called = {}, dict.fromkeys(CALLED_FROM, 0)
    for frames, count in run.stacks:
        for caller, frame in zip(frames, frames[1:]):
            if caller.file != "<string>":
                continue
            called[frame.name] += count
            if caller.line != CALLED_FROM[frame.name]:
                key = caller.label, frame.label
                wrong[key] = wrong.get(key, 0) + count
    assert wrong == {} and min(called.values()) > 0
    if cpu > BRIEF:
        assert min(called.values()) > 0.2 * run.samples
        assert run.ledger["name_unknown"] <= 0.01 * run.samples
        assert run.ledger["errors"]["code_replaced"] == 0


@pytest.mark.prove("truth")
@pytest.mark.alone
def test_program_that_kills_itself(python, profile):
    """The program kills itself right after its work, before user space could read its last code objects."""
    run = profile("-r", 1999, command=[*python.command, "-S", "-E",
                                       os.path.join(PROGRAMS, "gone.py")])
    assert run.count_name("work_9") > 0
    files = {frame.file for frames, _ in run.stacks for frame in frames
             if frame.name.startswith("work_")}
    assert files == {"json/x.py" if python.version < (3,) else "json/\u51fd.py"}
    assert run.count_name(GONE) == run.count_name(UNREADABLE) == 0
    assert run.ledger["unnamed_code_objects"] == 0


def test_exec_of_another_python(python, target, profile):
    # The same Python if there is no other one below its root.
    others = [other for other in find_pythons()
              if other.root == python.root and other.path != python.path] or [python]
    program = target(python, "changing.py", 0.7, others[-1].path,
                     os.path.join(PROGRAMS, "busy.py"))
    run = profile.start("-p", program.pid, "-r", 199)
    run.wait_sampling()
    program.go()
    wait_used(2, program.pid)
    run.interrupt().load()
    # Without a second examination nearly all samples after the exec would be errors.
    assert run.count_name("before_exec") > 0 and run.count_name("spin") > 0


def test_exec_of_no_python(any_python, target, profile, require):
    program = target(any_python, "changing.py", 0.3, require("sha256sum"), "/dev/zero")
    run = profile.start("-p", program.pid, "-r", 199)
    run.wait_sampling()
    program.go()
    run.wait_said("not Python")
    wait_used(0.5, program.pid)
    run.interrupt().load()
    told = [line for line in run.stderr.splitlines() if "not Python" in line]
    assert told == ["pybpfprof: process %d has exec'd a program that is not Python"
                    % program.pid]


def test_end_of_one_of_two(any_python, target, profile):
    first, second = target(any_python, "busy.py"), target(any_python, "busy.py")
    run = profile.start("-p", first.pid, "-p", second.pid)
    run.wait_sampling()
    wait_used(0.3, first.pid)
    first.end()
    wait_used(1, second.pid)
    assert run.process.poll() is None
    run.interrupt().load()
    roots = {frames[0].label.split(":")[0] for frames, _ in run.stacks}
    assert "process %d" % second.pid in roots


def is_leaderless(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"


def test_first_thread_has_ended(python, target, profile):
    """The process looks like a zombie, except that other threads run."""
    program = target(python, "leaderless.py")
    wait_for(lambda: is_leaderless(program.pid))
    run = profile("-p", program.pid, "-r", 199, cpu=BRIEF)
    assert run.count_name("late_work") > 0
    files = {frame.file for frames, _ in run.stacks for frame in frames}
    assert files <= {"leaderless.py", "threading.py"}


def test_first_thread_ends(any_python, target, profile):
    """Functions that are first called after that have names, too."""
    program = target(any_python, "leaderless.py", "wait")
    run = profile.start("-p", program.pid, "-r", 199)
    run.wait_sampling()
    wait_used(0.5, program.pid)
    program.go()
    wait_for(lambda: is_leaderless(program.pid))
    wait_used(1, program.pid)
    assert run.process.poll() is None
    run.interrupt().load()
    assert run.count_name("early_work") > 0
    assert run.count_name("late_work") > 0


def test_fifo_without_a_reader(any_python, target, profile, tmp_path):
    fifo = tmp_path / "profile.folded"
    os.mkfifo(str(fifo))
    ended = profile.attempt("-p", target(any_python, "busy.py").pid, "-d", 0.2, "-o", str(fifo))
    assert ended.status == 1
    assert "No such device or address" in ended.stderr
