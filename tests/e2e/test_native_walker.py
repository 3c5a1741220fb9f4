# SPDX-License-Identifier: BSD-2-Clause
"""The BPF walker, compiled natively under the sanitizers, on the memory of every Python here.

CPython itself reports each thread's stack (tests/programs/parked.py).
"""

import json
import os
import subprocess

import pytest

from conftest import ROOT

MOST_FRAMES = 1023
DEPTH = "depth %d"


class Parked:
    """The running program and its report."""

    def __init__(self, target, walker):
        self.said = target.said
        self.command = [walker, target.pid, target.said["runtime"], target.said["code_type"],
                        target.said["version"]]

    def stack(self, name):
        return self.said["threads"][name]["stack"]

    def walk(self, *pointers):
        words = [str(word) for word in [*self.command, *pointers]]
        run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             universal_newlines=True)
        assert run.returncode == 0, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    def walk_named(self, *names):
        return self.walk(*(self.said["threads"][name]["ident"] for name in names))


@pytest.fixture(scope="session")
def walker():
    path = os.path.join(os.environ.get("OUTPUT", os.path.join(ROOT, ".output")), "unit", "walker")
    assert os.access(path, os.X_OK), "%s is not built: run make unit-tests" % path
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def parked(session_target, walker):
    """parked(PYTHON): a Parked; one for each Python."""
    started = {}

    def start(python):
        if python not in started:
            started[python] = Parked(session_target(python, "parked.py"), walker)
        return started[python]
    return start


def test_the_program_has_the_expected_stacks(python, parked):
    """The other tests only mean something if the program has these stacks."""
    def names(thread):
        return [frame[0].rpartition(".")[2] for frame in parked(python).stack(thread)]

    assert names("main") == ["park"] + ["descend"] * 51 + ["main", "<module>"]
    assert names("consume") == ["park", "produce", "delegate", "consume"]
    assert names("hold") == ["park", "<lambda>", "__call__", "hold"]
    assert names("drive") == ["park", "wait", "await_it", "drive"]
    comprehensions = ["<listcomp>"] * 2 if (3,) <= python.version < (3, 12) else []
    assert names("comprehend") == ["park"] + ["descend"] * 4 + comprehensions + ["comprehend"]
    assert names("sleep") == ["sleep"]
    private = "_" if python.version >= (3,) else "__"
    assert names("threading") == ["sleep", "run", private + "bootstrap_inner",
                                  private + "bootstrap"]
    for depth in 49, 1000, 1022, 1024, 2500:
        assert names(DEPTH % depth) == ["park"] + ["descend"] * (depth - 1)


def test_every_stack_is_exact(python, parked):
    program = parked(python)
    names = [name for name in program.said["threads"] if len(program.stack(name)) <= MOST_FRAMES]
    assert len(names) == 10
    for name, sample in zip(names, program.walk_named(*names)):
        assert sample["outcome"] == "python", name
        assert sample["frames"] == program.stack(name), name
        assert sample["failed_reads"] == 0, name


def test_a_stack_that_is_too_deep_is_cut_at_the_root(python, parked):
    program = parked(python)
    for name in DEPTH % 1024, DEPTH % 2500:
        sample, = program.walk_named(name)
        assert sample["outcome"] == "truncated"
        assert sample["frames"] == program.stack(name)[:MOST_FRAMES] + [["truncated"]]
        assert sample["failed_reads"] == 0


def test_threads_without_python(python, parked):
    program = parked(python)
    native = program.said["native"]
    for sample in program.walk(native, native, 0x10000, 0):
        assert sample["outcome"] == "no_python"
        assert sample["frames"] == [["no_python"]]
        assert sample["failed_reads"] == 0


def test_a_sample_reads_little(python, parked):
    """Once the thread is known, a sample reads a few blocks, or an object for each frame."""
    first, second = parked(python).walk_named(DEPTH % 49, DEPTH % 49)
    assert second["frames"] == first["frames"]
    assert second["reads"] < first["reads"]
    if python.version >= (3, 11):
        # 3.11 and 3.12 have C frames to walk; 3.12's own frame at the root lies among them.
        most = {(3, 11): 8, (3, 12): 8}
        assert second["reads"] <= most.get(python.version[:2], 6)
    else:
        # The newest interpreter, the thread state and the frames.  2.7 also checks that the newest
        # thread state, which is not this one, is still the same.
        newest = 2 if python.version < (3,) else 0
        # 3.9 and 3.10 also read the kind of the outermost function.
        root = python.version[:2] in ((3, 9), (3, 10))
        assert second["reads"] == 1 + newest + 1 + 49 + root
