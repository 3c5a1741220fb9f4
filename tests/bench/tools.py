# SPDX-License-Identifier: BSD-2-Clause
"""The compared profilers: the command of each, and the reader of its output.

All sample at the same rate, all threads, only on the CPU, with lines and whole file names if they
can.  The output is folded stacks, or is converted to them by the profiler's own tool.
"""

import collections
import os
import re
import shutil
import sys

import peers
import stacks
from processes import BINARY, Failed

CONVERTER_TIMEOUT_S = 60

# pid: of the target; rate: in Hz; seconds: None until its end; folder: for this run's output;
# children: whether to profile the target's children, too.
Wanted = collections.namedtuple("Wanted", "pid rate seconds folder children")

# command: Wanted -> its arguments; read: Wanted -> stacks; options: of the target's Python; lines:
# whether its frames have lines; prefix: starts a Python where it can run; version: its own.
Tool = collections.namedtuple("Tool", "name command read options lines prefix version")


HERE = (sys.executable,)


def output(wanted, name="profile"):
    return os.path.join(wanted.folder, name)


def words_if(condition, *words):
    return list(words) if condition else []


def pybpfprof_command(wanted):
    return [BINARY, "-q", "-f", "folded", "--full-filenames", "-o", output(wanted),
            *words_if(wanted.seconds, "-d", wanted.seconds), "-r", wanted.rate,
            *words_if(wanted.children, "-s"), "-p", wanted.pid]


def read_folded(wanted):
    return stacks.read_folded(output(wanted))


def py_spy_command(program, *options):
    def command(wanted):
        return [*program, "record", "-f", "raw", "--full-filenames", "-o", output(wanted), *options,
                "-d", wanted.seconds or "unlimited", "-r", wanted.rate,
                *words_if(wanted.children, "-s"), "-p", wanted.pid]
    return command


def austin_command(program):
    def command(wanted):
        return [*program, "-c", "-i", "%dus" % (1000000 // wanted.rate), "-o", output(wanted),
                *words_if(wanted.seconds, "-x", wanted.seconds),
                *words_if(wanted.children, "-C"), "-p", wanted.pid]
    return command


def read_austin(wanted):
    converter = [peers.program("mojo2austin"), output(wanted), output(wanted, "text")]
    if peers.run(converter, CONVERTER_TIMEOUT_S) is None:
        raise Failed("mojo2austin does not read what it wrote")
    return stacks.parse_austin(stacks.read(output(wanted, "text")))


def sampling_command(python):
    def command(wanted):
        return [python.path, "-m", "profiling.sampling", "attach", "-r", wanted.rate, "-a",
                "--mode", "cpu", "--collapsed",
                *words_if(wanted.seconds, "-d", wanted.seconds),
                *words_if(wanted.children, "--subprocesses"),
                "-o", output(wanted, "profile.txt"), wanted.pid]
    return command


def read_collapsed(wanted):
    return stacks.read_collapsed(wanted.folder)


def perf_command(program):
    def command(wanted):
        return [program, "record", "-q", "-e", "cpu-clock", "-F", wanted.rate, "-g",
                "-o", output(wanted), "-p", wanted.pid,
                *words_if(wanted.seconds, "--", "sleep", wanted.seconds)]
    return command


def read_perf(wanted):
    text = peers.run(["perf", "script", "-f", "-i", output(wanted), "-F", "tid,ip,sym"],
                     CONVERTER_TIMEOUT_S)
    if text is None:
        raise Failed("perf script does not read what it wrote")
    return stacks.parse_perf(text)


def version_of(command):
    text = peers.run(command, 20) or "not there"
    found = re.search(r"\d+(\.\w+)+", text)
    return found[0] if found else text.splitlines()[-1]


def pybpfprof():
    return Tool("pybpfprof", pybpfprof_command, read_folded, (), True, HERE,
                version_of([BINARY, "--version"]))


def for_older():
    """The profilers that attach to released versions of CPython."""
    py_spy, austin = peers.runnable("py-spy"), peers.runnable("austin")
    py_spy_version = version_of([*py_spy, "--version"])
    return [Tool("py-spy", py_spy_command(py_spy), read_folded, (), True, HERE, py_spy_version),
            Tool("py-spy --nonblocking", py_spy_command(py_spy, "--nonblocking"), read_folded, (),
                 True, HERE, py_spy_version),
            Tool("austin", austin_command(austin), read_austin, (), True, HERE,
                 version_of([*austin, "--version"]))]


def for_own_version(python):
    """CPython's own sampler, which must have the target's version, and perf with CPython's
    support, which needs frame pointers, as in 3.15."""
    prefix = (peers.debian.ENTER, python.root, python.path) if python.root else (python.path,)
    version = ".".join(map(str, python.version))
    perf = shutil.which("perf") or "perf"
    return [Tool("profiling.sampling", sampling_command(python), read_collapsed, (), True, prefix,
                 version),
            Tool("perf, -X perf", perf_command(perf), read_perf, ("-X", "perf"), False, HERE,
                 version_of([perf, "--version"]))]
