# SPDX-License-Identifier: BSD-2-Clause
"""The processes of a bench: workloads that count their turns, and profilers on them."""

import contextlib
import glob
import os
import re
import select
import signal
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.environ.get("PYBPFPROF", os.path.join(ROOT, ".output", "pybpfprof"))
WORKLOADS = os.path.join(HERE, "workloads")
PROGRAMS = os.path.join(ROOT, "tests", "programs")
START_TIMEOUT_S = 30
POLL_SECONDS = 0.01


class Failed(Exception):
    """A run that failed; its text says why."""


def cpu_seconds(pid):
    """The CPU time of all present threads of a process."""
    nanoseconds = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with contextlib.suppress(OSError, IndexError):
            with open(path, encoding="ascii") as schedstat:
                nanoseconds += int(schedstat.read().split()[0])
    return nanoseconds / 1e9


def peak_mib(pid):
    """The peak memory use of a process; 0 if it has ended."""
    try:
        with open("/proc/%d/status" % pid, encoding="ascii") as status:
            peak = re.search(r"VmHWM:\s+(\d+)", status.read())
    except OSError:
        return 0
    return int(peak[1]) / 1024 if peak else 0


class Target:
    """A running workload, ready.  PINNED ones stay on the last CPU, because migrations are
    noise."""

    def __init__(self, python, folder, path, arguments=(), shows=1, pinned=True, flags=()):
        descriptor, self.shown = tempfile.mkstemp(dir=folder)
        os.ftruncate(descriptor, 8 * shows)
        os.close(descriptor)
        self.layout = struct.Struct("%dd" % shows)
        command = [*python.command, "-B", *flags, path, self.shown, *map(str, arguments)]
        cpus = [max(os.sched_getaffinity(0))] if pinned else os.sched_getaffinity(0)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=dict(os.environ, PYTHONUTF8="1"), start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        self.pid = self.process.pid
        answers, _, _ = select.select([self.process.stdout], [], [], START_TIMEOUT_S)
        if not answers or not self.process.stdout.readline().startswith(b"ready"):
            self.end()
            raise Failed("the workload did not start: " + " ".join(command))

    def read(self):
        """The numbers that it shows, which only grow.  A number that is just written may look
        like 0."""
        found = []
        with open(self.shown, "rb", buffering=0) as shown:
            for _ in range(2):
                shown.seek(0)
                found.append(self.layout.unpack(shown.read(self.layout.size)))
        return tuple(map(max, *found))

    def write(self, number):
        """Shows the workload a number, as its first one."""
        with open(self.shown, "r+b") as shown:
            shown.write(struct.pack("d", number))

    def speed(self, seconds):
        """Turns per second over a window of SECONDS."""
        start, turns = time.monotonic(), self.read()[0]
        time.sleep(seconds)
        return (self.read()[0] - turns) / (time.monotonic() - start)

    def go(self):
        """Sends the line that a workload waits for."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def end(self):
        """Ends it, and removes the files of -X perf of it and of the processes whose PIDs it
        printed."""
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        named = filter(bytes.isdigit, self.process.stdout.read().split())
        for pid in [self.pid, *map(int, named)]:
            with contextlib.suppress(OSError):
                os.unlink("/tmp/perf-%d.map" % pid)
        self.process.stdout.close()


# Waits for a line, then executes its arguments.
PARKED = ("import os, sys; print('parked', flush=True); sys.stdin.readline(); "
          "os.execvp(sys.argv[1], sys.argv[1:])")


class Run:
    """One run of a profiler, in a Python that waits until go(), so the start of that Python does not count.

    PREFIX starts a Python in an environment in which the profiler can run.
    """

    def __init__(self, command, prefix):
        self.messages = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*prefix, "-I", "-S", "-c", PARKED, *map(str, command)], stdin=subprocess.PIPE,
            stdout=self.messages, stderr=subprocess.STDOUT, start_new_session=True,
            env=dict(os.environ, LC_ALL="C"))
        self.pid = self.process.pid
        self.peak = 0
        self.started = time.monotonic()
        while not os.fstat(self.messages.fileno()).st_size:
            if self.watch(time.monotonic() + POLL_SECONDS) or \
                    time.monotonic() > self.started + START_TIMEOUT_S:
                self.end()
                raise Failed("its place cannot be entered: " + self.said())
        self.peak = 0

    def go(self):
        self.started = time.monotonic()
        self.process.stdin.write(b"\n")
        self.process.stdin.close()
        return self.started

    def watch(self, until):
        """Waits for its end, or until a moment of the monotonic clock.  Returns whether it has
        ended."""
        while time.monotonic() < until:
            if self.process.poll() is not None:
                return True
            self.peak = max(self.peak, peak_mib(self.pid))
            time.sleep(POLL_SECONDS)
        return self.process.poll() is not None

    def finish(self, timeout):
        """Waits for its end and sets `seconds` to its length.  Raises Failed after TIMEOUT."""
        ended = self.watch(time.monotonic() + timeout)
        self.seconds = time.monotonic() - self.started
        self.end()
        if not ended:
            raise Failed("not over after %d s" % self.seconds)

    def stacks(self, read, wanted):
        """The stacks that READ finds in its output.  Raises Failed if there is no Python stack.

        The exit status is ignored: one profiler ends with an error whenever its time is up."""
        try:
            found = read(wanted)
        except OSError:
            raise Failed("no profile: " + self.said()) from None
        if not any(frames and frames[-1].file for frames, _, _ in found):
            raise Failed("no Python stack in its profile: " + self.said())
        return found

    def said(self):
        """The last line of its output."""
        self.messages.seek(0)
        text = self.messages.read().decode("utf-8", "replace")
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("parked\n", "", 1)
        lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
        return lines[-1][:200] if lines else "exit status %s" % self.process.returncode

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
