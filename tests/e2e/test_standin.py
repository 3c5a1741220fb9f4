# SPDX-License-Identifier: BSD-2-Clause
"""Interpreters that are unavailable here: stand-ins (tests/standin) with their structs.

Free-threaded builds, a later version whose fields have moved, and wrong tables of debug offsets.
"""

import collections
import json
import os
import shutil
import signal
import struct
import sys
import time

import pytest

from conftest import PROGRAMS, ROOT, missing, wait_for, wait_used
from containers import innermost
from legal import BRIEF, runs_until
from standins import NEWEST, UNAVAILABLE, Build, each, expected, seen

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import kernel_cost  # noqa: E402

BUILDS = [build for minor in (13, 14, NEWEST, NEWEST + 1)
          for build in (Build(minor, False), Build(minor, True)) if build not in UNAVAILABLE]
BUILDS += [Build(NEWEST, threaded, True) for threaded in (False, True)]
WITH_JIT = [Build(minor, False, jit=True) for minor in (13, 14, NEWEST, NEWEST + 1)]
WITH_COPIES = [Build(minor, True) for minor in (14, NEWEST, NEWEST + 1)]

COOKIE = b"xdebugpy"
# Indexes of 64-bit words in 3.15's debug offsets.
VERSION, FREE_THREADED = 1, 2
THREAD_ID, FRAME_CODE, FRAME_INSTRUCTION, OBJECT_TYPE = 30, 41, 42, 59
UNICODE_LENGTH = 91

UNUSUAL = pytest.mark.prove("interpreters")


@pytest.mark.parametrize("build", each(BUILDS))
def test_every_stack_is_exact(build, standin, target, profile):
    program = target.start([standin(build)])
    run = profile("-p", program.pid, "-r", 4999, cpu=2)
    assert set(seen(run)) == expected(program.said, range(4))
    assert sum(seen(run).values()) == run.samples == run.ledger["python"]
    unknown = "this pybpfprof does not know" in run.stderr
    assert unknown == (build.moved or build.minor > NEWEST), run.stderr
    assert not unknown or "Python 3.%d." % build.minor in run.stderr


@pytest.mark.parametrize("build", each(WITH_JIT))
def test_innermost_lines_are_unknown_if_the_jit_may_run_unseen(build, standin, target, profile):
    program = target.start([standin(build)])
    run = profile("-p", program.pid, "-r", 4999, cpu=2)
    tells = 14 <= build.minor <= NEWEST
    assert run.ledger["line_unknown"] == (0 if tells else run.samples)
    stacks = expected(program.said, range(4))
    if not tells:
        stacks = {stack[:-1] + (stack[-1][:2] + (None,),) for stack in stacks}
    assert set(seen(run)) == stacks


@pytest.mark.parametrize("build", each(WITH_COPIES))
def test_bytecode_copies_of_a_later_thread(build, standin, target, profile):
    """A later thread's copies of bytecode reuse the addresses of an earlier thread's, for other lines."""
    program = target.start([standin(build), "reuse"])
    run = profile.start("-p", program.pid, "-r", 4999)
    run.wait_sampling()
    wait_used(1, program.pid)
    program.go()
    wait_used(1, program.pid)
    assert set(seen(run.interrupt().load())) == expected(program.said, range(5))


@pytest.mark.prove("interpreters")
@pytest.mark.parametrize("minor", range(13, NEWEST + 1))
def test_names_at_the_end_of_mapped_memory(minor, standin, target, profile):
    """Each name is freed before user space reads it. BPF's copy must not need the page after it."""
    program = target.start([standin(Build(minor, False)), "pass"])
    run = profile("-p", program.pid, "-r", 1999, cpu=2)
    names = {frame.name for frames, _ in run.stacks for frame in frames}
    assert names == {name for name, _, _ in program.said[0][0]}
    assert run.ledger["code_objects"] > 100
    assert run.ledger["unnamed_code_objects"] == 0


def break_table(path, word, value, folder):
    """A copy of the program at PATH with VALUE in word WORD of its debug offsets."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    assert content.count(COOKIE) == 1
    struct.pack_into("<Q", content, content.index(COOKIE) + 8 * word, value)
    broken = folder / "broken"
    broken.write_bytes(content)
    broken.chmod(0o755)
    return str(broken)


# Each table is valid except for the named word.
@pytest.mark.parametrize("build, word, value", [
    pytest.param(Build(NEWEST, False), FREE_THREADED, 1, id="flag-set"),
    pytest.param(Build(NEWEST, True), FREE_THREADED, 0, id="flag-not-set"),
    pytest.param(Build(13, True), FREE_THREADED, 0, id="flag-not-set-without-copies", marks=UNUSUAL),
    pytest.param(Build(NEWEST + 1, True), FREE_THREADED, 0, id="flag-not-set-in-a-newer-one", marks=UNUSUAL),
    pytest.param(Build(NEWEST + 1, False), OBJECT_TYPE, 0, id="objects-elsewhere"),
    pytest.param(Build(NEWEST + 1, False), FRAME_INSTRUCTION, 3, id="not-aligned"),
    pytest.param(Build(NEWEST + 1, False), FRAME_CODE, 1 << 20, id="beyond-its-struct"),
    pytest.param(Build(NEWEST + 1, False), FRAME_CODE, 40, id="another-field-for-the-code"),
    pytest.param(Build(NEWEST + 1, True), FRAME_INSTRUCTION, 80, id="another-field-for-the-instruction",
                 marks=UNUSUAL),
    pytest.param(Build(NEWEST + 1, False), THREAD_ID, 40, id="another-field-for-the-thread"),
    pytest.param(Build(NEWEST + 1, False), UNICODE_LENGTH, 32, id="another-field-for-the-length"),
])
def test_wrong_tables_are_refused(build, word, value, standin, target, profile, tmp_path):
    program = target.start([break_table(standin(build), word, value, tmp_path)])
    run = profile.attempt("-p", program.pid, "-d", 1)
    assert run.status == 3
    assert "Python 3.%d." % build.minor in run.stderr and "not supported: " in run.stderr
    assert run.stderr.count("\n") == 1


def test_table_that_differs_from_the_files_is_refused(standin, target, profile):
    """A process may change the table in its memory, here to plausible numbers."""
    build = Build(NEWEST, False)
    program = target.start([standin(build), "break", str(THREAD_ID), "40"])
    run = profile.attempt("-p", program.pid, "-d", 1)
    assert run.status == 3
    assert "differ from those in its file" in run.stderr
    assert run.stderr.count("\n") == 1


def test_major_4_is_refused(standin, target, profile, tmp_path):
    path = standin(Build(NEWEST, False))
    program = target.start([break_table(path, VERSION, 0x040000f0, tmp_path)])
    run = profile.attempt("-p", program.pid, "-d", 1)
    assert run.status == 3
    assert "Python 4.0.0, which is not supported" in run.stderr


# Possible results if memory changes while it is read. Which of them appear varies.
TORN = ("frame_address", "frame_fault", "thread_fault", "truncated", "name_unknown", "code_replaced")
# How a process is hostile, and the ledger's entries: at least one of them must count samples.
HOSTILITIES = [
    ("frame-loop", ("truncated",)),
    ("frames-nowhere", ("frame_address",)),
    ("state-loop", ("too_many_threads",)),
    ("interpreter-loop", ("too_many_threads",)),
    ("10000-states", ("too_many_threads",)),
    ("10000-threads", ("too_many_threads",)),
    ("no-interpreter", ("interpreter_fault",)),
    ("2-gib-names", ("unnamed_code_objects",)),
    ("overflows", ("unnamed_code_objects",)),
    ("rewriting", TORN),
    ("names-for-ever", ("unnamed_code_objects",)),
    ("codes-for-ever", ("unnamed_code_objects",)),
]
# The quick and cheap ones.
QUICKLY_HOSTILE = [(how, reasons) for how, reasons in HOSTILITIES if "10000" not in how and "ever" not in how]
HOSTILE_SECONDS = collections.defaultdict(lambda: 2, {"names-for-ever": 8, "codes-for-ever": 8})
# The most that a sample may cost, in us: time in the kernel, which only other virtual machines disturb, and
# the profiler's own CPU time, which varies with other load. Each limit is about four times the measured cost,
# more if that is small, and twice the profiler's in the last two. Those cost the most: names of 100 MiB per
# second, and a thousand new code objects per sample.
Cost = collections.namedtuple("Cost", "kernel user")
HOSTILE_COST = collections.defaultdict(lambda: Cost(50, 200), {
    "frame-loop": Cost(200, 200), "state-loop": Cost(500, 200), "interpreter-loop": Cost(500, 200),
    "10000-states": Cost(500, 200), "10000-threads": Cost(500, 200),
    "names-for-ever": Cost(50, 2000), "codes-for-ever": Cost(2500, 3000),
})
LOADING_CPU_S = 1
HOSTILE_DELAY_S = 20
# Three times the 256 MiB of names that are kept of a process.
HOSTILE_RSS_MB = 1000


@pytest.fixture
def hostile(standin, target):
    """hostile(HOW): a hostile process."""
    def start(how):
        program = target.start([standin(Build(14, False)), "hostile", how])
        if how == "10000-threads" and len(os.listdir("/proc/%d/task" % program.pid)) < 10000:
            missing("room for 10,000 threads")
        return program
    return start


def count_reasons(run, reasons):
    ledger = dict(run.ledger, **run.ledger["errors"])
    return sum(ledger[reason] for reason in reasons)


@pytest.mark.parametrize("how, reasons", QUICKLY_HOSTILE, ids=[row[0] for row in QUICKLY_HOSTILE])
def test_hostile_processes_are_survived(how, reasons, hostile, profile):
    runs_until(profile, lambda runs: count_reasons(runs[-1], reasons),
               "-p", hostile(how).pid, "-r", 1999, cpu=BRIEF)


@pytest.mark.prove("cost")
@pytest.mark.parametrize("how, reasons", HOSTILITIES, ids=[row[0] for row in HOSTILITIES])
def test_cost_of_hostile_processes(how, reasons, hostile, profile, tmp_path, measured):
    program, cost = hostile(how), HOSTILE_COST[how]
    used_path = str(tmp_path / "used")
    with kernel_cost.statistics():
        run = profile.start("-p", program.pid, "-r", 1999,
                            prefix=[sys.executable, os.path.join(PROGRAMS, "usage.py"), used_path])
        wait_for(lambda: run.is_sampling(innermost(run.pid)))
        wait_used(HOSTILE_SECONDS[how], program.pid)
        kernel = kernel_cost.read(innermost(run.pid))
        os.kill(innermost(run.pid), signal.SIGINT)
        asked = time.monotonic()
        run.load()
        assert time.monotonic() - asked < HOSTILE_DELAY_S
    assert count_reasons(run, reasons) > 0, run.ledger
    with open(used_path, encoding="ascii") as file:
        used = json.load(file)
    events = run.ledger["events"]
    found = Cost(kernel.nanoseconds / 1e3 / events, (used["cpu_s"] - LOADING_CPU_S) * 1e6 / events)
    measured("us a sample of a hostile process (%s)" % how, "%.0f, and %.0f of the profiler's" % found,
             "< %d, %d" % cost)
    # Runs that met another process count as well.
    assert kernel.runs > events / 2, (kernel, events)
    assert found.kernel < cost.kernel and found.user < cost.user
    assert used["rss_mb"] < HOSTILE_RSS_MB, used


SPARSE_BYTES = 1 << 40


def test_file_of_a_terabyte(standin, target, profile, tmp_path):
    """Only the parts that the headers name are read. The whole file would take hours."""
    path = str(tmp_path / "sparse")
    shutil.copy(standin(Build(14, False)), path)
    try:
        os.truncate(path, SPARSE_BYTES)
    except OSError:
        missing("a file system for a sparse file of a terabyte")
    program = target.start([path])
    run = profile("-p", program.pid, "-r", 999, cpu=BRIEF)
    assert set(seen(run)) <= expected(program.said, range(4)) and run.ledger["python"] > 0


def test_file_replaced_while_it_runs(standin, target, profile, tmp_path):
    """The mapped file is read, not the new file of its name."""
    path = str(tmp_path / "replaced")
    shutil.copy(standin(Build(14, False)), path)
    program = target.start([path])
    os.unlink(path)
    shutil.copy(standin(Build(NEWEST, True)), path)
    run = profile("-p", program.pid, "-r", 999, cpu=BRIEF)
    assert set(seen(run)) <= expected(program.said, range(4)) and run.ledger["python"] > 0
