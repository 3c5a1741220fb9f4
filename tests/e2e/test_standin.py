# SPDX-License-Identifier: BSD-2-Clause
"""Interpreters that cannot be had: stand-ins (tests/standin) that have their structs.

Free-threaded builds, a later version whose fields have moved, and tables that are wrong.
"""

import collections
import os
import shutil
import subprocess
import time

import pytest

from conftest import ROOT, missing
from headers import find_headers, make_next_version

SOURCE = os.path.join(ROOT, "tests", "standin", "interpreter.c")
NEWEST = 15

# The last is newer than every table: 3.15 with its fields moved.
BUILDS = [(minor, threaded) for minor in (13, 14, NEWEST, NEWEST + 1) for threaded in (False, True)]
WITH_COPIES = [(minor, True) for minor in (14, NEWEST, NEWEST + 1)]

# Words of 3.15's debug offsets.
VERSION, FREE_THREADED = 1, 2
THREAD_ID, FRAME_CODE, FRAME_INSTRUCTION, OBJECT_TYPE = 30, 41, 42, 59
UNICODE_LENGTH = 91


def name_of(build):
    minor, threaded = build
    return "3.%d%s" % (minor, "t" if threaded else "")


def headers_for(minor, folder):
    """The folder of 3.MINOR's headers; those of a version that is to come are made up."""
    real = min(minor, NEWEST)
    headers = find_headers(real) or missing("headers of Python 3.%d" % real)
    if minor == real:
        return headers, os.path.dirname(headers)
    copy = os.path.join(folder, "python3.%d" % minor)
    shutil.copytree(headers, copy)
    make_next_version(copy, real)
    return copy, os.path.dirname(headers)


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    """standin((MINOR, FREE_THREADED)): the path of the stand-in for that build."""
    built = {}

    def build(which):
        if which in built:
            return built[which]
        folder = str(tmp_path_factory.mktemp("standin"))
        headers, beside = headers_for(which[0], folder)
        path = os.path.join(folder, "interpreter")
        # Most of what the headers' initializers refer to is in no program but CPython.
        command = [os.environ.get("CC", "cc"), "-w", "-O1", "-static", "-pthread", "-I", headers,
                   "-I", os.path.join(headers, "internal"), "-I", beside, SOURCE,
                   "-Wl,--unresolved-symbols=ignore-all", "-o", path]
        if which[1]:
            command.append("-DPy_GIL_DISABLED=1")
        subprocess.run(command, check=True)
        built[which] = path
        return path
    return build


def expected(said, numbers):
    """The stacks of the threads NUMBERS, as (name, file, line)."""
    base = os.path.basename(said["file"])
    return {tuple((name, base, line or None) for name, line in stack)
            for number in numbers for stack in said["threads"][number]}


def seen(run):
    """How often each stack of Python was sampled."""
    counts = collections.Counter()
    for frames, count in run.stacks:
        if frames[0].file:
            counts[tuple((frame.name, frame.file, frame.line) for frame in frames)] += count
    return counts


@pytest.mark.parametrize("build", BUILDS, ids=name_of)
def test_every_stack_is_exact(build, standin, target, profile):
    program = target.start([standin(build)])
    run = profile("-p", program.pid, "-d", 1, "-r", 4999)
    assert set(seen(run)) == expected(program.said, range(4))
    assert sum(seen(run).values()) == run.samples == run.ledger["python"]
    newer = "newer than this build" in run.stderr and "Python 3.%d." % build[0] in run.stderr
    assert newer == (build[0] > NEWEST), run.stderr


@pytest.mark.parametrize("build", WITH_COPIES, ids=name_of)
def test_copies_that_a_later_thread_has(build, standin, target, profile):
    """The same addresses are other lines than in the thread before."""
    program = target.start([standin(build), "reuse"])
    run = profile.start("-p", program.pid, "-d", 3, "-r", 4999)
    run.wait_sampling()
    time.sleep(1)
    program.go()
    assert set(seen(run.load())) == expected(program.said, range(5))


def break_table(standin, build, word, value):
    return [standin(build), "break", str(word), str(value)]


# Each is possible but for what this names.
@pytest.mark.parametrize("build, word, value", [
    pytest.param((NEWEST, False), FREE_THREADED, 1, id="flag-set"),
    pytest.param((NEWEST, True), FREE_THREADED, 0, id="flag-not-set"),
    pytest.param((13, True), FREE_THREADED, 0, id="flag-not-set-without-copies"),
    pytest.param((NEWEST + 1, True), FREE_THREADED, 0, id="flag-not-set-in-a-newer-one"),
    pytest.param((NEWEST + 1, False), OBJECT_TYPE, 0, id="objects-elsewhere"),
    pytest.param((NEWEST + 1, False), FRAME_INSTRUCTION, 3, id="not-aligned"),
    pytest.param((NEWEST + 1, False), FRAME_CODE, 1 << 20, id="beyond-its-struct"),
    pytest.param((NEWEST + 1, False), FRAME_CODE, 40, id="another-field-for-the-code"),
    pytest.param((NEWEST + 1, True), FRAME_INSTRUCTION, 80, id="another-field-for-the-instruction"),
    pytest.param((NEWEST + 1, False), THREAD_ID, 40, id="another-field-for-the-thread"),
    pytest.param((NEWEST + 1, False), UNICODE_LENGTH, 32, id="another-field-for-the-length"),
])
def test_wrong_tables_are_refused(build, word, value, standin, target, profile):
    program = target.start(break_table(standin, build, word, value))
    run = profile.attempt("-p", program.pid, "-d", 1)
    assert run.status == 3
    assert "Python 3.%d." % build[0] in run.stderr and "not supported: " in run.stderr
    assert run.stderr.count("\n") == 1


def test_major_4_is_refused(standin, target, profile):
    program = target.start(break_table(standin, (NEWEST, False), VERSION, 0x040000f0))
    run = profile.attempt("-p", program.pid, "-d", 1)
    assert run.status == 3
    assert "Python 4.0.0, which is not supported" in run.stderr
