# SPDX-License-Identifier: BSD-2-Clause
"""Does the jobs of /jobs.json, inside a machine of tests/kernels.

A job is one run of the profiler, on programs that are all running first.  Its result is a line of
standard output: JSON, deflated and in base64, for a serial port is slow.  What is right or wrong,
the host says.
"""

import base64
import json
import os
import signal
import struct
import subprocess
import zlib

PATIENCE_S = 120
PROFILE, STATS = "/tmp/profile", "/tmp/stats"


def read(path):
    """What the profiler wrote, once."""
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            return file.read()
    except OSError:
        return None
    finally:
        if os.path.exists(path):
            os.unlink(path)


class Program:
    """A program of a job: it is stopped from its "ready" on, until the profiler starts."""

    def __init__(self, description):
        self.totals = description["totals"]
        self.process = subprocess.Popen(description["command"], stdout=subprocess.PIPE,
                                        preexec_fn=lambda: os.nice(description["nice"]))
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
        self.process.kill()
        self.process.wait()
        return {"pid": self.process.pid, "said": self.said, "used": used}


def profile(command, environment):
    """The profiler's exit status, None where it did not end, and what it said."""
    command = ["/usr/bin/pybpfprof", "-f", "folded", "-o", PROFILE, "--stats", STATS] + command
    try:
        # The programs leave it little time to load, else.
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                               env=dict(os.environ, **environment),
                               preexec_fn=lambda: os.nice(-20))
    except subprocess.TimeoutExpired as reason:
        return None, str(reason)
    return ended.returncode, ended.stdout.decode("utf-8", "replace")


def run(job):
    programs = [Program(description) for description in job["programs"]]
    for program in programs:
        program.begin()
    pids = [word for program in programs for word in ("-p", str(program.process.pid))]
    status, output = profile(pids + job["arguments"], job["environment"])
    return {"status": status, "output": output, "programs": [program.end() for program in programs],
            "profile": read(PROFILE), "stats": read(STATS)}


def main():
    with open("/jobs.json", encoding="utf-8") as jobs:
        for job in json.load(jobs):
            result = json.dumps(run(job)).encode("ascii")
            print(base64.b64encode(zlib.compress(result)).decode("ascii"), flush=True)


main()
