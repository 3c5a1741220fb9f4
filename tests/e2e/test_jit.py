# SPDX-License-Identifier: BSD-2-Clause
"""CPython's JIT: a frame has no line if its line may not be the current one."""

import os
import platform

import pytest

from conftest import PROGRAMS, missing
from legal import BRIEF, briefly_and_long, runs_until
from native_chains import CHAIN, chain_library, check_native_ledger, is_python, is_reason, python_of  # noqa: F401
from pythons import RELEASE, own_and_fetched_pythons


def switchable_pythons():
    return [python for python in own_and_fetched_pythons() if python.kind == RELEASE]


def line_of(text):
    """The number of the line TEXT in jitted.py."""
    with open(os.path.join(PROGRAMS, "jitted.py"), encoding="utf-8") as file:
        return [line.strip() for line in file].index(text) + 1


@pytest.fixture
def with_jit(python, target):
    """with_jit(NAME, ARGUMENT...): starts that program with the JIT on.  Returns a Target."""
    def start(*command):
        program = target(python, *command, environment={"PYTHON_JIT": "1"})
        if not program.said:
            missing("JIT in Python " + python.name)
        return program
    return start


@pytest.mark.pythons(which=switchable_pythons, since=(3, 14))
@briefly_and_long()
def test_only_the_innermost_line_is_left_out(with_jit, profile, cpu):
    run = profile("-p", with_jit("jitted.py").pid, "-r", 999, "-v", cpu=cpu)
    called_at = {"first": line_of("first(20000)"), "second": line_of("second(20000)")}
    seen = dict.fromkeys(called_at, 0)
    for frames, count in run.stacks:
        if frames[-1].name in seen:
            assert frames[-2].name == "work" and frames[-2].line == called_at[frames[-1].name]
            seen[frames[-1].name] += count if frames[-1].line is None else 0
    assert all(seen.values()), seen
    assert sum(seen.values()) <= run.ledger["line_unknown"]
    # The starts and ends of the loops are not compiled.
    assert cpu == BRIEF or sum(seen.values()) > 0.9 * run.samples
    assert run.ledger["line_unknown"] <= run.ledger["python"]
    assert " without a line number)" in run.stderr


@pytest.mark.prove("truth")
@pytest.mark.pythons(which=switchable_pythons, since=(3, 14))
def test_functions_alone(with_jit, profile):
    """With -F, a function that runs partly in the JIT is one stack.  Some of its samples have no line."""
    run = profile("-p", with_jit("half_jitted.py").pid, "-r", 1999, "-F", cpu=3)
    assert 0 < run.ledger["line_unknown"] < run.ledger["python"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the JIT's frames are known on x86-64 only")
@pytest.mark.pythons(which=switchable_pythons, since=(3, 15))
def test_native_frames(with_jit, profile, chain_library):
    """JIT code does not break the chain of native frames, and does not change Python frames."""
    chain = ["<module>", "main", "work", "c:chain_enter", "middle", "c:chain_pass", "inner", "key_of", "loop"]
    known = {"c:chain_enter", "c:chain_pass", "[JIT]", "?"}
    program = with_jit("jitted_calls.py", chain_library(CHAIN))

    def spell(frames):
        """The words of the chain, and labels of unknown code.  The interpreter's C functions are left out."""
        words = [frame.short if is_python(frame) else
                 "c:" + frame.name if frame.file == CHAIN else frame.label for frame in frames]
        return [word for frame, word in zip(frames, words) if is_python(frame) or word in known]

    runs = runs_until(profile, lambda runs: any(spell(frames) == chain + ["[JIT]"]
                                                for run in runs for frames, _ in run.stacks),
                      "-p", program.pid, "-n", "-r", 999, cpu=BRIEF)
    for run in runs:
        check_native_ledger(run.ledger)
        for frames, _ in run.stacks:
            if not is_reason(frames[0]):
                python = [frame.short for frame in frames if is_python(frame)]
                assert python == python_of(chain)[:len(python)], frames


@pytest.mark.pythons(which=switchable_pythons, since=(3, 14))
@briefly_and_long(1)
def test_lines_are_exact_without_the_jit(python, target, profile, cpu):
    run = profile("-p", target(python, "jitted.py", environment={"PYTHON_JIT": "0"}).pid,
                  "-r", 999, cpu=cpu)
    assert run.ledger["line_unknown"] == 0
    without = sum(count for frames, count in run.stacks if frames[-1].line is None)
    assert cpu == BRIEF or without < 0.01 * run.samples
