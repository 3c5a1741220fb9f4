# SPDX-License-Identifier: BSD-2-Clause
"""guest.py KERNEL: runs the jobs of /jobs.json, inside a machine of tests/kernels.

A job is one run of the profiler, after a command that root runs first, usually on programs that are
all running.  The profiler has all of root's privileges, or runs as nobody with some capabilities;
some kernels need additional ones.  A job for some kernels only has no result in others.  A result
is a line of standard output: the job's name and its outcome, as JSON, deflated and in base64,
because a serial port is slow.  The host judges the results.
"""

import base64
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import zlib

PATIENCE_S = 120
PROFILE, STATS = "/tmp/profile", "/tmp/stats"

NOBODY = 65534
# From linux/prctl.h and linux/capability.h.
KEEP_CAPABILITIES, AMBIENT, RAISE = 8, 47, 2
CAPABILITY_VERSION = 0x20080522


def read(path):
    """The contents of a file of the profiler, which is then removed."""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            return file.read()
    except OSError:
        return None
    finally:
        if os.path.exists(path):
            os.unlink(path)


class Program:
    """A program of a job.  It is stopped from its "ready" until the profiler starts."""

    def __init__(self, description):
        self.totals = description["totals"]
        self.process = subprocess.Popen(description["command"], stdout=subprocess.PIPE,
                                        preexec_fn=lambda: begin(description["nice"],
                                                                 description["capabilities"]))
        self.said = self.process.stdout.readline().decode("utf-8", "replace")
        self.process.send_signal(signal.SIGSTOP)

    def used(self):
        """The CPU time of its functions so far, by its own clock."""
        if not self.totals:
            return []
        with open(self.totals, "rb") as file:
            content = file.read()
        return struct.unpack("%dd" % (len(content) // 8), content)

    def begin(self):
        self.before = self.used()
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        """Its part of the result."""
        used = [end - start for end, start in zip(self.used(), self.before)]
        ended = self.process.poll()
        self.process.kill()
        self.process.wait()
        return {"pid": self.process.pid, "said": self.said, "used": used, "ended": ended}


def become_nobody(capabilities):
    """Keeps these capabilities, by number, also for child processes."""
    libc = ctypes.CDLL(None, use_errno=True)
    low, high = (sum(1 << bit % 32 for bit in capabilities if bit // 32 == word) for word in (0, 1))
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    sets = struct.pack("=6I", low, low, low, high, high, high)
    libc.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    if libc.capset(header, sets):
        raise OSError(ctypes.get_errno(), "capset")
    for capability in capabilities:
        libc.prctl(AMBIENT, RAISE, capability, 0, 0)


def begin(nice, capabilities):
    """Prepares a process before it executes a program or the profiler."""
    os.nice(nice)
    if capabilities is not None:
        become_nobody(capabilities)


def run_profiler(job, pids):
    """The profiler's exit status (None if it did not end) and its output."""
    command = job["command"] + [word for pid in pids for word in ("-p", str(pid))]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                               env=dict(os.environ, **job["environment"]),
                               # The programs would leave it little CPU time to load.
                               preexec_fn=lambda: begin(-20, job["capabilities"]))
    except subprocess.TimeoutExpired as reason:
        said = (reason.stdout or b"").decode("utf-8", "replace")
        return None, "%snot over after %d s" % (said, PATIENCE_S)
    return ended.returncode, ended.stdout.decode("utf-8", "replace")


def run(job):
    subprocess.call(["sh", "-c", job["first"]], stdout=subprocess.DEVNULL)
    programs = [Program(description) for description in job["programs"]]
    for program in programs:
        program.begin()
    status, output = run_profiler(job, [program.process.pid for program in programs])
    return {"status": status, "output": output, "programs": [program.end() for program in programs],
            "profile": read(PROFILE), "stats": read(STATS)}


def main():
    kernel, = sys.argv[1:]
    with open("/jobs.json", encoding="utf-8") as jobs:
        for name, job in json.load(jobs).items():
            if job["kernel"] not in ("", kernel):
                continue
            if job["capabilities"] is not None:
                job["capabilities"] += job["besides"].get(kernel, [])
            result = json.dumps([name, run(job)]).encode("ascii")
            print(base64.b64encode(zlib.compress(result)).decode("ascii"), flush=True)


if __name__ == "__main__":
    main()
