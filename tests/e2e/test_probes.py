# SPDX-License-Identifier: BSD-2-Clause
"""Function calls (uprobes) and USDT probes as events: each is attributed to its line."""

import json
import os
import platform
import shutil
import subprocess

import pytest

from answering import answering, ask, record_while_asked
from conftest import CAPABILITIES, PROGRAMS, as_nobody, wait_for
from folded import stacks

CALLS = 100
CALL_LINE, FIRE_LINE = 7, 10
SCRIPT = """import ctypes, os, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
listeners = ctypes.c_ushort.in_dll(library, 'listeners')
sys.setswitchinterval(1e-5)
def call():
    for number in range(%d):
        library.probed(number)
def fire():
    for number in range(%d):
        library.fire()
def work():
    # The profiler listens to the probe last.
    while not listeners.value:
        time.sleep(0.01)
    threads = [threading.Thread(target=each) for each in (call, call, fire)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
if sys.argv[2:]:
    print('done')
    sys.stdout.flush()
for line in sys.stdin:
    if 'exec' in line:
        os.execv(sys.executable, [sys.executable] + sys.argv + ['again'])
    if 'fork' in line:
        child = os.fork()
        if not child:
            # Unless the profiler knows the child, that takes the inherited breakpoint out.
            library.fire()
            work()
            os._exit(0)
        os.waitpid(child, 0)
    elif 'go' in line:
        work()
    print('done')
    sys.stdout.flush()
""" % (CALLS, CALLS)
FIRED = "usdt:%s:test:fired"
CALLED = "uprobe:%s:probed"


@pytest.fixture(scope="module")
def library(require, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("library") / "probed.so")
    subprocess.run([require("gcc"), "-O1", "-shared", "-fPIC", os.path.join(PROGRAMS, "probed.c"), "-o", path],
                   check=True)
    return path


@pytest.fixture
def caller(any_python, library, tmp_path):
    """A program that calls the function and fires the probe on each request."""
    with answering(any_python, tmp_path / "caller.py", SCRIPT, library) as process:
        ask(process, 1, b"are you ready?")
        yield process


@pytest.fixture
def record(profile, caller, library, tmp_path):
    """record(ARGUMENT...): (path of the profile, ledger, run) of one request."""
    def run(*arguments, request=b"go"):
        events = ("-e", CALLED % library, "-e", FIRED % library)
        return record_while_asked(profile, tmp_path, caller, 1, "folded", *events, *arguments, request=request)
    return run


def on_line(path, line):
    return sum(count for frames, count in stacks(path) if any(frame.line == line for frame in frames))


@pytest.mark.parametrize("probe, line, value", [(CALLED, CALL_LINE, 2 * CALLS), (FIRED, FIRE_LINE, CALLS)])
def test_each_call_is_on_its_line(record, library, probe, line, value):
    event = probe % library
    path, ledger, run = record("--show", event)
    counted = ledger["per_event"][event]
    assert counted["unit"] == "count" and counted["period"] == 1
    # A sample is lost (busy) if its CPU is already taking another one.
    assert counted["samples"] + counted["busy"] == value
    assert on_line(path, line) == counted["samples"] == counted["value"] == sum(count for _, count in stacks(path))
    assert "the kernel puts breakpoints into the memory of the targets" in run.stderr


def test_children_are_probed(record, library):
    path, ledger, _ = record("-s", "--show", CALLED % library, request=b"fork")
    assert on_line(path, CALL_LINE) + ledger["per_event"][CALLED % library]["busy"] == 2 * CALLS


def test_a_process_is_probed_again_after_an_exec(profile, caller, library, tmp_path):
    path, stats = tmp_path / "calls.folded", tmp_path / "stats.json"
    run = profile.start("-v", "-p", caller.pid, "-e", CALLED % library, "-e", FIRED % library, "--show", CALLED % library,
                        "-o", path, "--stats", stats, files=False)
    run.wait_sampling()
    ask(caller, 1, b"exec")
    # Once for each event, before and after the exec.
    wait_for(lambda: run.said().count(" breakpoints for ") == 4)
    ask(caller, 1)
    run.interrupt().finish()
    assert run.status == 0, run.stderr
    counted = json.loads(stats.read_text())["per_event"][CALLED % library]
    assert on_line(path, CALL_LINE) + counted["busy"] == 2 * CALLS


def test_a_program_that_is_started_is_probed(profile, any_python, library, tmp_path):
    script = tmp_path / "caller.py"
    script.write_text(SCRIPT)
    work = subprocess.Popen(["echo", "go"], stdout=subprocess.PIPE)
    run = profile("-e", CALLED % library, "-e", FIRED % library, "--show", FIRED % library, stdin=work.stdout,
                  command=[*any_python.command, str(script), library])
    work.wait()
    assert sum(count for frames, count in run.stacks if frames[-1].line == FIRE_LINE) + \
        run.ledger["per_event"][FIRED % library]["busy"] == CALLS


def test_native_frames_begin_at_the_function(record, library):
    path, _, _ = record("-n", "--show", CALLED % library)
    assert {frames[-1].name for frames, _ in stacks(path)} == {"probed"}


def test_no_call_is_lost_beside_the_clock(record, library):
    path, ledger, _ = record("-e", "cpu-clock", "-r", "999", "--show", CALLED % library)
    assert on_line(path, CALL_LINE) + ledger["per_event"][CALLED % library]["busy"] == 2 * CALLS


def test_no_breakpoint_stays(record, caller, library):
    """The code in memory is as in the file again."""
    def text():
        with open("/proc/%d/maps" % caller.pid, encoding="utf-8") as maps:
            start, end = next(line.split()[0].split("-") for line in maps if library in line and "r-xp" in line)
        with open("/proc/%d/mem" % caller.pid, "rb", buffering=0) as memory:
            memory.seek(int(start, 16))
            return memory.read(int(end, 16) - int(start, 16))
    record("--show", CALLED % library)
    with open(library, "rb") as file:
        assert text() in file.read()


def test_refused(profile, caller, library):
    def refusal(*arguments):
        run = profile.attempt("-d", "1", *arguments)
        assert run.status == 2
        return run.stderr
    def of_caller(event):
        return refusal("-p", caller.pid, "-e", event)
    assert "changes the memory of each process that is sampled: use record with -p" in \
        refusal("-a", "-e", CALLED % library)
    assert "has no function 'probe': did you mean probed?" in of_caller("uprobe:%s:probe" % library)
    assert "has no probe 'test:fire': did you mean fired?" in of_caller("usdt:%s:test:fire" % library)
    assert "has no probe 'tests:fired'" in of_caller("usdt:%s:tests:fired" % library)
    assert "/nothing cannot be read: No such file or directory" in of_caller("uprobe:/nothing:here")
    assert "is no program or library for this machine" in of_caller("uprobe:%s:here" % os.path.abspath(__file__))
    assert "is no probe: use uprobe:/PATH:FUNCTION" in of_caller("uprobe:libc.so.6:malloc")
    assert "is no probe: use uprobe:/PATH:FUNCTION" in of_caller("uprobe:%s" % library)
    assert "is no probe: use usdt:/PATH:PROVIDER:NAME" in of_caller("usdt:%s:fired" % library)
    assert "has no count: each call is a sample" in of_caller("uprobe:%s:probed:7" % library)
    if platform.machine() == "x86_64":
        assert "cannot be trapped: the kernel emulates none of its first instructions" in \
            of_caller("uprobe:%s:stepped" % library)


def test_links_and_copies_of_the_library(profile, caller, library, tmp_path):
    """A symbolic link is followed. For a copy that the target has not mapped, there is a warning."""
    link = str(tmp_path / "link.so")
    os.symlink(library, link)
    run = profile.start("-p", caller.pid, "-e", CALLED % link, "-d", "0.1").finish()
    assert "has not mapped" not in run.stderr
    copy = shutil.copy(library, str(tmp_path / "copy.so"))
    run = profile.start("-p", caller.pid, "-e", CALLED % copy, "-d", "0.1").finish()
    assert "process %d has not mapped the file of %s, or has an older one" % (caller.pid, CALLED % copy) in run.stderr


def test_without_the_capability(public_binary, profile, any_python, target, library):
    profile.binary = public_binary
    listed = profile.start("events", prefix=as_nobody(CAPABILITIES), files=False).finish()
    assert "with -p or a program to start; not here without CAP_SYS_ADMIN." in listed.stdout.decode("utf-8")
    assert "with -p or a program to start." in profile.attempt("events").stdout.decode("utf-8")
    own = target.start([*any_python.command, os.path.join(PROGRAMS, "busy.py")], user=65534)
    run = profile.start("-p", own.pid, "-e", CALLED % library, "-f", "folded", "-o", os.devnull,
                        prefix=as_nobody(CAPABILITIES), files=False).finish()
    assert run.status == 4, run.stderr
    assert "the kernel does not allow sampling %s: run as root, or with CAP_SYS_ADMIN" % (CALLED % library) in run.stderr
