# SPDX-License-Identifier: BSD-2-Clause
"""Only in 2.7 and 3.6: interpreters without _PyRuntime, and thread states left over by a fork."""

import glob
import os
import shutil
import subprocess

import pytest

from legal import BRIEF, briefly_and_long, check_whole, runs_until
from pythons import RELEASE, own_and_fetched_pythons


@pytest.fixture(scope="session")
def stripped(require, tmp_path_factory):
    """stripped(PYTHON): the command of a copy without symbols, and its environment."""
    def copy(python):
        folder = tmp_path_factory.mktemp("stripped")
        program = python.root + python.path
        home = os.path.dirname(os.path.dirname(program))
        name = "libpython%d.%d*.so.*" % python.version[:2]
        libraries = glob.glob(os.path.join(home, "lib", name))
        for path in [program] + libraries:
            shutil.copy(path, str(folder))
            subprocess.run([require("strip"), str(folder / os.path.basename(path))], check=True)
        environment = {"PYTHONHOME": home, "LD_LIBRARY_PATH": str(folder)}
        return str(folder / os.path.basename(python.path)), environment
    return copy


def before_runtime():
    return [python for python in own_and_fetched_pythons()
            if python.version < (3, 7) and python.kind == RELEASE]


@pytest.mark.pythons(which=before_runtime)
def test_without_symbols(python, target, profile, stripped):
    """The list of interpreters is found from the code that returns it."""
    path, environment = stripped(python)
    program = target(path, "busy.py", environment=environment)
    run = profile("-p", program.pid, "-r", 499, cpu=BRIEF)
    assert run.count_name("spin") == run.ledger["python"] > 0


@briefly_and_long()
def test_forked_child_has_its_own_threads(python, target, profile, measured, cpu):
    program = target(python, "forked.py")
    if python.version < (3,):
        assert program.said["reused"] > 0  # otherwise it would prove nothing

    def four_are_seen(runs):
        return len({frames[0].label for run in runs for frames, _ in run.stacks}) >= 4

    runs = runs_until(profile, four_are_seen, "-p", program.said["pid"], "-r", 999, "-t", cpu=cpu)
    assert not any(run.count_name("left_behind") for run in runs)
    alive = sum(run.count_name("alive") for run in runs)
    assert alive > 0
    if cpu > BRIEF:
        check_whole(measured, "a forked child's threads, " + python.name, alive,
                    sum(run.samples for run in runs))


SOURCE = """
#include <stdio.h>
#include <unistd.h>

__attribute__((used)) static const char tag[] = "%s", version[] = "%s";

void *PyInterpreterState_Head(void)
{
	return (void *)tag;
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	return usleep(%d);
}
"""

UNKNOWN = [("cpython-35", "3.5.10", "not supported"),
           ("cpython-36", "3.6.9", "show where its interpreters are")]


@pytest.fixture
def pretender(require, tmp_path):
    """pretender(TAG, VERSION, MICROSECONDS): a program with these constants.  It looks like a
    Python, but cannot be walked."""
    def build(*constants):
        path = str(tmp_path / "worker")
        subprocess.run([require("gcc"), "-x", "c", "-rdynamic", "-o", path, "-"], check=True,
                       input=SOURCE % constants, universal_newlines=True)
        return path
    return build


@pytest.mark.parametrize("tag, version, reason", UNKNOWN)
def test_a_process_that_cannot_be_walked_is_refused(target, profile, pretender, tag, version, reason):
    program = target.start([pretender(tag, version, 60000000)])
    run = profile.attempt("-p", program.pid, "-d", 30)
    assert run.status == 3
    assert len(run.stderr.splitlines()) == 1
    assert version in run.stderr and reason in run.stderr


@pytest.mark.parametrize("tag, version, reason", UNKNOWN)
def test_a_command_that_cannot_be_walked_is_refused(profile, pretender, tag, version, reason):
    run = profile.attempt(command=[pretender(tag, version, 2000000)])
    assert run.status == 3
    assert version in run.stderr and reason in run.stderr


# It exports a symbol of PyPy's library, and has PyPy's version string.
PYPY = """
#include <stdio.h>

__attribute__((used)) static char version[] = "3.9.16 (7.3.11, Dec 30 2024)\\n[PyPy 7.3.11 with GCC 12.2.0]";

int pypy_execute_source(void)
{
	return version[0];
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		__asm__ volatile("");
}
"""


def test_pypy_is_named(target, profile, require, tmp_path):
    """With -a, its samples are counted as not supported."""
    path = str(tmp_path / "pypy3")
    subprocess.run([require("gcc"), "-x", "c", "-rdynamic", "-o", path, "-"], check=True, input=PYPY,
                   universal_newlines=True)
    program = target.start([path])
    run = profile.attempt("-p", program.pid, "-d", 30)
    assert run.status == 3
    assert run.stderr.endswith("process %d runs PyPy 7.3.11, which is not supported: only CPython is\n" %
                               program.pid)
    run = profile("-a", "-r", 199, cpu=BRIEF, of=[program.pid])
    assert "process %d runs PyPy 7.3.11, which is not supported" % program.pid in run.stderr
    of_process = [frames for frames, _ in run.stacks if frames[0].label.startswith("process %d:" % program.pid)]
    assert of_process and all(frames[-1].label == "[Python not supported]" for frames in of_process)
