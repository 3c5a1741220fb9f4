# SPDX-License-Identifier: BSD-2-Clause
"""--gil samples the thread that holds the GIL; --gil-blame measures how long others wait for it."""

import json
import os

import pytest

from conftest import wait_for
from folded import parse_folded
from pythons import FREE_THREADED, own_and_fetched_pythons
from standins import UNAVAILABLE, each
from test_off_cpu import threads_of

GIL_SINCE = (3, 7)
RATE = ("-r", "999")


def those_that_tell():
    """The Pythons that have a GIL, and tell which thread holds it."""
    return [python for python in own_and_fetched_pythons()
            if python.version >= GIL_SINCE and python.kind != FREE_THREADED]


@pytest.mark.pythons(which=those_that_tell)
def test_only_the_thread_with_the_gil_is_shown(python, profile, target):
    """Hashing a large string releases the GIL."""
    program = target(python, "gil.py", "spin_here", "release_here")
    run = profile("-p", program.pid, "--gil", *RATE, cpu=0.5)
    assert run.count_name("spin_here") > 0
    assert run.ledger["without_gil"] > 0
    assert sum(run.ledger["errors"].values()) == 0 and run.ledger["no_python"] == 0
    all_threads = profile("-p", program.pid, *RATE, cpu=0.5)
    assert all_threads.count_name("release_here") > 0 and all_threads.ledger["without_gil"] == 0


@pytest.mark.pythons(which=those_that_tell)
def test_the_thread_that_keeps_others_waiting_is_blamed(python, profile, target):
    program = target(python, "gil.py", "keep_here", "sleep_here")
    run = profile("-p", program.pid, "--gil-blame", *RATE, cpu=0.5)
    assert run.count_name("keep_here") > 0
    event = run.ledger["per_event"]["gil-blame"]
    assert event["unit"] == "nanoseconds" and event["value"] == run.samples > 0
    assert event["events"] == event["samples"] + event["without_gil"] + event["lost"]
    assert sum(event["errors"].values()) == 0 and event["no_python"] == 0


@pytest.mark.pythons(which=those_that_tell)
def test_a_single_thread_is_not_blamed(python, profile, target):
    program = target(python, "gil.py", "spin_here")
    run = profile.start("-p", program.pid, "--gil-blame", *RATE, cpu=0.3)
    run.load(status=5)
    assert run.stacks == [] and run.ledger["samples"] == 0
    assert run.ledger["events"] == run.ledger["without_gil"] > 0
    assert "none was seen waiting for it" in run.stderr


@pytest.mark.parametrize("arguments", [("--gil",), ("--gil-blame",)], ids=["gil", "blame"])
def test_with_native_and_kernel_frames(arguments, any_python, profile, target):
    program = target(any_python, "gil.py", "keep_here", "sleep_here")
    run = profile("-p", program.pid, *arguments, *RATE, "-n", "-k", "-t", cpu=0.3)
    stacks = [[frame.name for frame in frames] for frames, _ in run.stacks]
    assert any("keep_here" in names and names[-1] != "keep_here" for names in stacks)


def test_blame_beside_the_clock(any_python, profile, target, tmp_path):
    """The text format says what gil-blame measures."""
    program = target(any_python, "gil.py", "keep_here", "sleep_here")
    path, stats = str(tmp_path / "blame.text"), str(tmp_path / "stats.json")
    run = profile.start("-p", program.pid, "--gil-blame", "-e", "cpu-clock", "--show", "gil-blame", *RATE,
                        "-o", path, "--stats", stats, files=False, cpu=0.3)
    assert run.finish().status == 0, run.stderr
    with open(stats, encoding="utf-8") as file:
        events = json.load(file)["per_event"]
    assert set(events) == {"cpu-clock", "gil-blame"}
    assert events["cpu-clock"]["without_gil"] == 0
    with open(path, encoding="utf-8") as file:
        assert "\ngil-blame: time that other threads waited for the GIL\n" in file.read()


@pytest.mark.parametrize("arguments, said", [
    (("--gil", "--off-cpu"), "a thread that waits does not hold the GIL; leave out --off-cpu and --wall"),
    (("--gil", "--wall"), "a thread that waits does not hold the GIL; leave out --off-cpu and --wall"),
    (("--gil-blame", "--off-cpu"), "use no other event with it than -e cpu-clock"),
    (("--gil-blame", "-i"), "use no other event with it than -e cpu-clock"),
    (("--gil-blame", "-e", "page-faults"), "use no other event with it than -e cpu-clock"),
    (("-e", "gil-blame:3"), "gil-blame has no count: it is sampled at the rate of -r"),
], ids=" ".join)
def test_refused_options(arguments, said, profile, tmp_path):
    run = profile.attempt("-a", *arguments, "-o", tmp_path / "profile.folded")
    assert run.status == 2 and said in run.stderr


def test_the_agent_does_not_blame(profile):
    run = profile.attempt("agent", "--listen", "127.0.0.1:0", "-e", "gil-blame")
    assert run.status == 2 and "the agent cannot sample gil-blame" in run.stderr


def those_that_do_not_tell():
    return [python for python in own_and_fetched_pythons() if python.version < GIL_SINCE]


@pytest.mark.pythons(which=those_that_do_not_tell)
def test_a_python_that_does_not_tell_the_holder_is_refused(python, profile, target):
    program = target(python, "gil.py", "spin_here")
    said = "runs Python %d.%d.%d, which does not tell which thread holds the GIL" % python.version
    run = profile.attempt("-p", program.pid, "--gil", "-d", "1")
    assert run.status == 2 and said in run.stderr
    run = profile.attempt("--gil-blame", "-d", "60", command=[*python.command, "-c", "import time; time.sleep(1)"])
    assert run.status == 2 and said in run.stderr


@pytest.mark.parametrize("build", each(UNAVAILABLE))
def test_a_free_threaded_build_has_no_gil(build, standin, profile, target):
    """-p refuses it.  With -a, each of its samples says so."""
    path = standin(build)
    program = target.start([path])
    run = profile.attempt("-p", program.pid, "--gil", "-d", "1")
    assert run.status == 2 and "which is a free-threaded build, without a GIL" in run.stderr
    run = profile("-a", "--comm", os.path.basename(path), "--gil", *RATE, cpu=0.2, of=[program.pid])
    assert run.ledger["errors"]["gil_untold"] == run.samples > 0
    assert run.count_name("[Python does not tell who holds the GIL]") == run.samples
    assert "its samples count as gil_untold" in run.stderr


@pytest.mark.parametrize("build", each(UNAVAILABLE))
def test_stopped_threads_have_their_own_reason(build, standin, profile, target, tmp_path):
    """One thread stops all others.  Their waits have a reason of their own."""
    program = target.start([standin(build), "suspend"])
    path = tmp_path / "waits.folded"
    run = profile.start("-p", program.pid, "--off-cpu", "-o", path, files=False)
    run.wait_sampling()
    before = threads_of(program.pid)
    wait_for(lambda: sum(count > before[thread] + 20 for thread, count in threads_of(program.pid).items()) >= 2)
    run.interrupt().finish()
    assert run.status == 0, run.stderr
    reasons = {frames[-1].name for frames, value in parse_folded(path.read_text(encoding="utf-8")) if value}
    assert {"[stopped for another thread]", "[lock]"} <= reasons
