# SPDX-License-Identifier: BSD-2-Clause
"""Threads have the whole names that the program gave them, and never another thread's."""

import json
import os
import re
import signal

import pytest

from conftest import PROGRAMS, wait_for, wait_used


def names_in(path):
    """{tid: name} of a speedscope file."""
    with open(path, encoding="utf-8") as file:
        titles = [profile["name"] for profile in json.load(file)["profiles"]]
    matches = [re.fullmatch(r'Thread (\d+) "(.*)"', title, re.DOTALL) for title in titles]
    assert all(matches), titles
    return {int(match[1]): match[2] for match in matches}


def said_names(pid, said):
    """The names that a target printed. Threads without a Python name get the kernel's."""
    names = {}
    for tid, name in said.items():
        if name is None:
            with open("/proc/%d/task/%s/comm" % (pid, tid), encoding="utf-8") as comm:
                name = comm.read().rstrip("\n")
        names[int(tid)] = name
    return names


def wait_each_used(seconds, pid, tids):
    """Returns when each of these threads, which share a lock, has used SECONDS more of CPU time."""
    def used(tid):
        with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as schedstat:
            return int(schedstat.read().split()[0]) / 1e9
    ends = {tid: used(tid) + seconds for tid in tids}
    wait_for(lambda: all(used(tid) >= end for tid, end in ends.items()))


@pytest.fixture
def speedscope(profile, tmp_path):
    """speedscope(ARGUMENT...): a started run, and the file that it will write."""
    def start(*arguments, **options):
        path = str(tmp_path / "profile.speedscope.json")
        return profile.start(*arguments, "-o", path, files=False, **options), path
    return start


@pytest.mark.proves("thread names")
def test_names_of_every_kind(python, target, speedscope):
    program = target(python, "thread_names.py")
    run, path = speedscope("-p", program.pid, "-r", 999)
    run.wait_sampling()
    # The reader waits for input, and gets no samples.
    wait_each_used(0.03, program.pid, [tid for tid, name in program.said.items() if name != "reader"])
    assert run.interrupt().finish().status == 0, run.stderr
    expected = said_names(program.pid, program.said)
    assert names_in(path) == {tid: name for tid, name in expected.items() if name != "reader"}


@pytest.mark.proves("thread names")
def test_the_last_name_counts(python, target, speedscope):
    program = target(python, "thread_names.py")
    run, path = speedscope("-p", program.pid, "-r", 999)
    run.wait_sampling()
    program.process.stdin.write(b" again\n")
    program.process.stdin.flush()
    said = json.loads(program.process.stdout.readline().decode("utf-8")[len("ready "):])
    wait_used(0.5, program.pid)
    os.kill(run.pid, signal.SIGINT)
    assert run.finish().status == 0, run.stderr
    names = names_in(path)
    expected = said_names(program.pid, said)
    assert names and any(name.endswith("characters again") for name in expected.values())
    assert names == {tid: expected[tid] for tid in names}


RENAMED = """
import threading, time
def work():
    for name, seconds in ("early", 0.5), ("late", 3):
        threading.current_thread().name = name
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
# A thread that is sampled just as the interpreter ends has no name any more.
while time.thread_time() < 0.3:
    pass
time.sleep(0.8)
thread = threading.Thread(target=work, name="made")
thread.start()
thread.join()
time.sleep(0.5)
"""


def test_the_last_name_of_an_ended_thread(any_python, speedscope):
    """The thread ends long before the recording."""
    run, path = speedscope("-r", 99, command=[*any_python.command, "-c", RENAMED])
    assert run.finish().status == 0, run.stderr
    assert "late" in names_in(path).values()
    assert not {"early", "made"} & set(names_in(path).values())


@pytest.mark.proves("thread names")
@pytest.mark.parametrize("way", ["fork", "thread"])
def test_forked_childs_thread(python, target, speedscope, way):
    """The forked thread keeps its name, though up to 3.13 its ID is not yet updated."""
    child = target(python, "forks.py", way).said
    run, path = speedscope("-p", child, "-r", 499, cpu=0.2)
    assert run.finish().status == 0, run.stderr
    assert names_in(path) == {child: "a thread that forks"}


# The kernel's name, which a thread keeps that ended before its Python name was read.
KERNELS_NAME = re.compile(r"python[\d.]*(t|-dbg)?")


@pytest.fixture
def brief_threads(speedscope):
    """brief_threads(PYTHON, COUNT, SECONDS, RATE): {tid: (name shown, name given)} of the sampled threads."""
    def run_them(python, count, seconds, rate):
        program = os.path.join(PROGRAMS, "brief_threads.py")
        run, path = speedscope("-r", rate, command=[*python.command, program, count, seconds])
        assert run.finish().status == 0, run.stderr
        said = {int(tid): name for tid, name in json.loads(run.stdout).items()}
        names = names_in(path)
        assert len(names) >= count, (names, said)
        return {tid: (name, said[tid]) for tid, name in names.items()}
    return run_them


@pytest.mark.proves("thread names")
@pytest.mark.parametrize("timely", [False, pytest.param(True, marks=pytest.mark.prove("truth"))])
def test_no_thread_has_the_name_of_another(python, brief_threads, timely):
    names = brief_threads(python, 30, 0.03, 999)
    others = {tid: (shown, given) for tid, (shown, given) in names.items() if shown != given}
    assert all(KERNELS_NAME.fullmatch(shown) for shown, _ in others.values()), others
    # On a busy machine names are read late.
    assert not timely or len(others) <= len(names) / 2, others


@pytest.mark.prove("truth")
@pytest.mark.proves("thread names")
def test_every_thread_has_its_name(python, brief_threads):
    """All samples have the name, even those taken before the thread has it and while it ends."""
    names = brief_threads(python, 6, 0.6, 4999)
    assert {tid: shown for tid, (shown, _) in names.items()} == \
        {tid: given for tid, (_, given) in names.items()}


@pytest.mark.parametrize("arguments", [[], ["-t"]])
def test_very_many_threads(any_python, speedscope, arguments):
    """The profile has 1024 threads. Further ones are merged into one, unless -t asks for threads."""
    program = os.path.join(PROGRAMS, "brief_threads.py")
    run, path = speedscope("-r", 9999, *arguments, command=[*any_python.command, program, 1300, 0.001])
    assert run.finish().status == 0, run.stderr
    names = names_in(path)
    assert names.pop(0, None) == (None if arguments else "[other threads]")
    assert len(names) > 1024 if arguments else len(names) == 1024
