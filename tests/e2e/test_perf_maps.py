# SPDX-License-Identifier: BSD-2-Clause
"""Code generated at run time gets its names from the program's perf map."""

import os

import pytest

from conftest import wait_used
from legal import BRIEF, runs_until
from native_chains import chain_command, chain_library, have, is_python  # noqa: F401

CALLS = {"call_first": "first leaf (perf map)", "call_second": "second (perf map)"}


@pytest.fixture
def written():
    """written(PID): removes the process's perf map and its .real file after the test."""
    pids = []
    yield pids.append
    for pid in pids:
        for end in "", ".real":
            path = "/tmp/perf-%d.map%s" % (pid, end)
            if os.path.lexists(path):
                os.unlink(path)


@pytest.fixture
def jit_code(target, written):
    """jit_code(PYTHON, HOW): a process that runs jit_code.py."""
    def start(python, how):
        program = target(python, "jit_code.py", how)
        written(program.pid)
        return program
    return start


def leaves(runs):
    """Pairs of the innermost Python function and the native leaf below it."""
    found = set()
    for run in runs:
        for frames, _ in run.stacks:
            python = [frame.short for frame in frames if is_python(frame)]
            if python and not is_python(frames[-1]):
                found.add((python[-1], frames[-1].label))
    return found


def labels(runs):
    return {frame.label for run in runs for frames, _ in run.stacks for frame in frames}


def profile_until(profile, program, wanted, *arguments):
    return runs_until(profile, lambda runs: wanted <= leaves(runs), "-p", program.pid, "-n", "-r", 999,
                      *arguments, cpu=BRIEF)


def test_generated_code_has_names(python, jit_code, profile):
    runs = profile_until(profile, jit_code(python, "whole"), set(CALLS.items()))
    for run in runs:
        for frames, _ in run.stacks:
            for caller, callee in CALLS.items():
                below = [frame.label for frame in frames if is_python(frame) and frame.short == caller]
                assert frames[-1].label != callee or below, frames


@pytest.mark.parametrize("how", ["foreign", "link"])
def test_foreign_and_linked_maps_are_ignored(how, any_python, jit_code, profile):
    wanted = {(caller, "[anonymous]") for caller in CALLS}
    runs = profile_until(profile, jit_code(any_python, how), wanted)
    assert not [label for label in labels(runs) if "perf map" in label]


def test_names_that_come_late(any_python, jit_code, profile):
    """Stacks counted before the map was written get its names afterwards."""
    program = jit_code(any_python, "later")
    run = profile.start("-p", program.pid, "-n", "-v", "-r", 999)
    run.wait_sampling()
    wait_used(BRIEF, program.pid)
    program.go()
    run.wait_said("perf maps have names that were lacking")
    wait_used(BRIEF, program.pid)
    run.interrupt().load()
    assert set(CALLS.items()) | {("call_first", "[anonymous]")} <= leaves([run])


@pytest.fixture
def with_trampolines(target, chain_command, written):
    """with_trampolines(PYTHON): a process that runs the chain "key" as with -X perf."""
    def start(python):
        program = target(python, *chain_command("key"), environment={"PYTHONPERFSUPPORT": "1"})
        written(program.pid)
        return program
    return start


@pytest.mark.pythons(since=(3, 12))
def test_trampolines_of_x_perf_are_hidden(python, with_trampolines, profile):
    """Their time counts for the Python frames."""
    runs = runs_until(profile, lambda runs: have(runs, "key"), "-p", with_trampolines(python).pid, "-n", "-r", 999,
                      cpu=BRIEF)
    assert not [label for label in labels(runs) if label.startswith("py::")]


@pytest.mark.pythons(since=(3, 12))
def test_trampolines_of_x_perf_are_shown(python, with_trampolines, profile):
    runs_until(profile, lambda runs: any(label.startswith("py::key_of:") for label in labels(runs)),
               "-p", with_trampolines(python).pid, "-n", "--native-all", "-r", 999, cpu=BRIEF)
