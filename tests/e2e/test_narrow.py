# SPDX-License-Identifier: BSD-2-Clause
"""A 32-bit Python, PyPy and another architecture's Python are reported and counted as not supported.  Other
32-bit programs are not taken for Python."""

import os
import subprocess

import pytest

import i386  # pythons.py has added its folder to the path
import refused
from conftest import missing
from embedding import BUSY, NOT_PYTHON

SPIN = "import time; end = time.time() + 5\nwhile time.time() < end: pass"

# It needs no C library.
OTHER = """
void _start(void)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(4), "b"(1), "c"("ready\\n"), "d"(6) : "memory");
	for (;;)
		__asm__ volatile("");
}
"""


@pytest.fixture(scope="module")
def narrow():
    """The command of a 32-bit Python."""
    if os.uname().machine != "x86_64":
        pytest.skip("no processor here that runs programs for i386")
    fetched = i386.fetch()
    if fetched.outcome != "there":
        missing("32-bit Python (%s)" % fetched.reason)
    asked = subprocess.run([*i386.COMMAND, "-c", "import sys; print(sys.maxsize)"], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if asked.returncode != 0:
        missing("kernel that runs programs for i386 (%s)" % asked.stdout.strip())
    assert int(asked.stdout) == 2 ** 31 - 1
    return i386.COMMAND


def check_refusal(run):
    assert run.status == NOT_PYTHON
    assert "runs a 32-bit Python %s." % i386.VERSION in run.stderr
    assert "not supported: only 64-bit Python is" in run.stderr


def count_not_supported(run, pid):
    """The number of samples of that process since it became busy.py.  Each of them must be one of a Python
    that is not supported."""
    begins = 'process %d:"%s /' % (pid, i386.COMMAND[-1])
    of_process = [(frames, count) for frames, count in run.stacks if frames[0].label.startswith(begins)]
    assert all(frames[-1].label == "[Python not supported]" for frames, _ in of_process), of_process
    return sum(count for _, count in of_process)


def test_process_is_refused(narrow, target, profile):
    program = target.start([*narrow, BUSY])
    run = profile.attempt("-p", program.pid, "-d", 30)
    check_refusal(run)
    assert run.stderr.count("\n") == 1


def test_command_is_refused(narrow, profile):
    """Although it is sampled until it is identified."""
    check_refusal(profile.attempt(command=[*narrow, "-c", SPIN]))


@pytest.mark.parametrize("started", ["before", "later"])
def test_samples_are_counted_as_not_supported(narrow, target, profile, started):
    if started == "before":
        program = target.start([*narrow, BUSY])
        run = profile("-a", "-r", 199, cpu=0.5, of=[program.pid])
    else:
        run = profile.start("-a", "-r", 199)
        run.wait_sampling()
        program = target.start([*narrow, BUSY])
        run.wait_said("process %d runs a 32-bit Python" % program.pid)
        run.cpu, run.of = 0.5, [program.pid]
        run.load()
    said = [line for line in run.stderr.splitlines() if "process %d " % program.pid in line]
    assert len(said) == 1 and "runs a 32-bit Python %s." % i386.VERSION in said[0], run.stderr
    assert run.ledger["errors"]["not_supported"] >= count_not_supported(run, program.pid) > 0


REFUSED = [("pypy", "runs PyPy 7.3.", "only CPython is")]
if os.uname().machine == "x86_64":
    REFUSED.append(("qemu", "runs an aarch64 Python 3.13.", "only x86-64 Python is"))


@pytest.mark.prove("interpreters")
@pytest.mark.parametrize("name, kind, supported", REFUSED, ids=[row[0] for row in REFUSED])
def test_other_kind_is_refused_and_counted(name, kind, supported, target, profile):
    for fetched in refused.fetch(name):
        if fetched.outcome != "there":
            missing("%s (%s)" % (fetched.name, fetched.reason))
    program = target.start([*refused.command_of(name), BUSY])
    run = profile.attempt("-p", program.pid, "-d", 30)
    assert run.status == NOT_PYTHON
    assert kind in run.stderr and supported in run.stderr
    run = profile("-a", "-r", 199, cpu=0.5, of=[program.pid])
    of_process = [frames[-1].label for frames, _ in run.stacks
                  if frames[0].label.startswith("process %d:" % program.pid)]
    assert set(of_process) == {"[Python not supported]"}


def test_another_32_bit_program_is_no_python(narrow, any_python, target, profile, require, tmp_path):
    path = str(tmp_path / "python3")
    subprocess.run([require("gcc"), "-m32", "-static", "-nostdlib", "-x", "c", "-o", path, "-"], check=True,
                   input=OTHER, universal_newlines=True)
    program = target.start([path])
    run = profile.attempt("-p", program.pid, "-d", 30)
    assert run.status == NOT_PYTHON
    assert "process %d is not a Python" % program.pid in run.stderr
    # A recording without any sample has another status.
    python = target(any_python, "busy.py")
    run = profile("-a", "-r", 199, cpu=0.5, of=[program.pid, python.pid])
    assert not [frames for frames, _ in run.stacks if frames[0].label.startswith("process %d:" % program.pid)]
