# SPDX-License-Identifier: BSD-2-Clause
"""Reads of a target's memory or files may never return: the profiler goes on without that target."""

import os
import signal
import subprocess
import time

import pytest

from conftest import missing, parse_folded, wait_for, wait_used
from test_changes import is_leaderless

NOT_READ = "stopped reading process %d"

DEVICES = {"userfaultfd": "/dev/userfaultfd", "late": "/dev/userfaultfd", "fuse": "/dev/fuse"}

# Ends after 0.05 s of CPU time.
SHORT = """
import time
def short():
    while time.process_time() < 0.05:
        pass
short()
"""


@pytest.fixture
def silent(any_python, target, tmp_path):
    """silent(WHAT, BY, ["leaderless"]): the target silent.py."""
    def start(what, by, *words):
        if not os.path.exists(DEVICES[by]):
            missing(by)
        if any_python.version < (3, 11):
            pytest.skip("no data stack before 3.11")
        folder = tmp_path / "mounted"
        folder.mkdir(exist_ok=True)
        # Lazy binding would make the program itself read symbols from the first page of its file.
        return target(any_python, "silent.py", what, by, folder, *words, environment={"LD_BIND_NOW": "1"})
    return start


@pytest.fixture
def healthy(any_python, target):
    return target(any_python, "busy.py")


def pair(first, second):
    return "%d,%d" % (first.pid, second.pid)


def check(run, program, healthy):
    """The profiler says once which process it stopped reading, and profiles the other one as usual."""
    run.wait_sampling()
    run.wait_said(NOT_READ % program.pid)
    wait_used(0.5, program.pid, healthy.pid)
    run.interrupt().load()
    assert run.stderr.count(NOT_READ % program.pid) == 1, run.stderr
    assert run.ledger["lost"] == 0
    assert run.count_name("leaf") > 0
    return run


@pytest.mark.parametrize("by", ["userfaultfd", "fuse"])
def test_memory(silent, healthy, profile, by):
    """Samples taken meanwhile are not lost."""
    program = silent("later", by)
    run = profile.start("-p", pair(program, healthy), "-r", 499)
    run.wait_sampling()
    program.go()
    check(run, program, healthy)


@pytest.mark.parametrize("what, by", [("header", "userfaultfd"), ("frame", "fuse")])
def test_a_target_that_is_silent_from_the_start(silent, healthy, profile, what, by):
    """The target does not answer from the start: its memory, or a mapped file that the profiler opens."""
    program = silent(what, by)
    check(profile.start("-p", pair(program, healthy), "-r", 499), program, healthy)


def test_a_stopped_thread_that_is_walked_from_outside(silent, any_python, target, profile, tmp_path):
    """The stopped target's waits are left out. The other process's are there."""
    program, other = silent("frame", "userfaultfd"), target(any_python, "asleep.py")
    os.kill(program.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED | os.WNOWAIT)
    run = profile.start("-v", "-p", pair(program, other), "--off-cpu", "-o", tmp_path / "waits.folded", files=False)
    run.wait_said("threads waited already")
    run.interrupt().finish()
    assert run.status == 0 and run.stderr.count(NOT_READ % program.pid) == 1, run.stderr
    functions = {frame.name for frames, _ in parse_folded((tmp_path / "waits.folded").read_text()) for frame in frames}
    assert "read_here" in functions and "spin" not in functions, functions


def test_a_hanging_look_up_of_packages(silent, healthy, profile):
    """The profiler hangs while it looks for packages above a function's file."""
    program = silent("name", "fuse")
    run = check(profile.start("-p", pair(program, healthy), "-r", 499), program, healthy)
    assert run.count_name("spin") > 0


def test_a_hanging_root_folder(silent, healthy, profile):
    """The profiler hangs on the target's root folder, the first step of each look-up of a file."""
    program = silent("root", "fuse")
    run = check(profile.start("-p", pair(program, healthy), "-r", 499), program, healthy)
    assert run.count_name("spin") > 0


def test_a_silent_target_without_a_first_thread(silent, healthy, profile):
    """Its files are opened through another thread, and charged to the same process."""
    program = silent("frame", "fuse", "leaderless")
    wait_for(lambda: is_leaderless(program.pid))
    check(profile.start("-p", pair(program, healthy), "-r", 499), program, healthy)


@pytest.mark.parametrize("by", ["userfaultfd", "fuse"])
def test_a_command_line_that_never_comes(silent, healthy, profile, by):
    """Linux does not wait for the memory of a command line. The process gets its name instead."""
    program = silent("command", by, "leaderless")
    wait_for(lambda: is_leaderless(program.pid))
    run = profile("-p", pair(program, healthy), "-r", 499, cpu=0.5)
    assert run.count_name("leaf") > 0 and run.count_name("spin") > 0
    assert run.count(lambda frame: frame.label.startswith('process %d:"[' % program.pid)) > 0


def test_alone(silent, profile):
    program = silent("header", "userfaultfd")
    run = profile.attempt("-p", program.pid, "-d", 1)
    assert run.status == 1
    assert NOT_READ % program.pid in run.stderr
    assert "none of these processes responds" in run.stderr


@pytest.mark.parametrize("for_long", [False, True], ids=["shortly", "for-long"])
def test_a_silent_target_of_record_a(silent, healthy, profile, for_long):
    """The profile shows the process with the reason for its missing stacks, even before it is given up."""
    program = silent("header", "userfaultfd")
    run = profile.start("-a", "-r", 199)
    run.wait_sampling()
    if for_long:
        run.wait_said(NOT_READ % program.pid)
    wait_used(0.5, program.pid, healthy.pid)
    run.interrupt().load()
    assert run.stderr.count(NOT_READ % program.pid) == 1
    assert run.ledger["unreadable_processes"] >= 1
    ends = {frames[-1].label for frames, _ in run.stacks
            if frames[0].label.startswith("process %d:" % program.pid)}
    given_up = {"[process not readable, perhaps Python]"}
    assert ends and ends <= given_up | {"[process not identified yet]"}
    assert not for_long or given_up <= ends
    assert run.count_name("leaf") > 0


@pytest.mark.prove("truth")
def test_others_are_profiled_meanwhile(any_python, silent, profile):
    """While several targets do not answer, start-up is quick, and short-lived processes are profiled."""
    programs = [silent("header", "userfaultfd") for _ in range(3)]
    before = time.monotonic()
    run = profile.start("-a", "-r", 999)
    run.wait_sampling()
    assert time.monotonic() - before < 6
    short = []
    for _ in range(3):
        programs.append(silent("frame", "userfaultfd"))
        for _ in range(8):
            short.append(subprocess.Popen([*any_python.command, "-c", SHORT]))
            time.sleep(0.05)
    assert not any(process.wait() for process in short)
    run.interrupt().load()
    found = {frames[0].label for frames, _ in run.stacks if any(frame.name == "short" for frame in frames)}
    assert len(found) >= 22, run.stderr
    assert all(run.stderr.count(NOT_READ % program.pid) == 1 for program in programs), run.stderr


def test_a_target_that_answers_late_is_profiled(silent, profile):
    """The target is read once its memory arrives."""
    program = silent("header", "late")
    run = profile("-a", "-r", 199, cpu=2, of=[program.pid])
    assert run.stderr.count(NOT_READ % program.pid) == 0
    assert run.count_name("spin") > 0


def test_interrupt_while_a_read_hangs(silent, healthy, profile):
    """An interrupt ends the run while a read hangs."""
    program = silent("later", "userfaultfd")
    run = profile.start("-p", pair(program, healthy), "-r", 499)
    run.wait_sampling()
    program.go()
    wait_used(0.3, healthy.pid)
    run.interrupt().load()
    assert run.count_name("leaf") > 0
