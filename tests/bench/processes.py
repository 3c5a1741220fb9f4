# SPDX-License-Identifier: BSD-2-Clause
"""The processes of a bench: workers that count their turns, and the profiler on them."""

import contextlib
import glob
import json
import os
import re
import signal
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.environ.get("PYBPFPROF", os.path.join(ROOT, ".output", "pybpfprof"))
SETTLING_SECONDS = 0.3


class Worker:
    """One running work.py."""

    def __init__(self, python, folder, cpu, frames=49, threads=1):
        descriptor, self.counter = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
        command = [*python.command, "-B", os.path.join(HERE, "work.py"), self.counter, str(frames),
                   str(threads)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE,
                                        preexec_fn=lambda: os.sched_setaffinity(0, [cpu]))
        self.pid = self.process.pid
        if self.process.stdout.readline() != b"ready\n":
            raise RuntimeError("%s did not start" % " ".join(command))

    def turns(self):
        with open(self.counter, "rb") as counter:
            return struct.unpack("Q", counter.read(8))[0]

    def speed(self, seconds):
        """Turns a second over a window of SECONDS."""
        start, turns = time.monotonic(), self.turns()
        time.sleep(seconds)
        return (self.turns() - turns) / (time.monotonic() - start)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def workers(python, count=1, **options):
    """COUNT workers, each on a CPU of its own: to be moved would be noise."""
    with tempfile.TemporaryDirectory() as folder:
        running = []
        try:
            for index in range(count):
                cpu = sorted(os.sched_getaffinity(0), reverse=True)[index]
                running.append(Worker(python, folder, cpu, **options))
            yield running
        finally:
            for worker in running:
                worker.end()


class Profiler:
    """One run of the profiler on some workers."""

    def __init__(self, targets, rate, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.stats = os.path.join(self.folder.name, "stats.json")
        command = [BINARY, "-v", "-r", str(rate), "-o", os.path.join(self.folder.name, "out.html"),
                   "--stats", self.stats, *arguments]
        for target in targets:
            command += ["-p", str(target.pid)]
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL)
        self.pid = self.process.pid

    def wait_sampling(self):
        """Returns when its perf events are open and its start-up is over."""
        folder = "/proc/%d/fd" % self.pid
        while self.process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if any("perf_event" in os.readlink(path) for path in glob.glob(folder + "/*")):
                    time.sleep(SETTLING_SECONDS)
                    return
            time.sleep(0.01)
        raise RuntimeError(self.process.stderr.read().decode())

    def cpu_seconds(self):
        nanoseconds = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.pid):
            with open(path, encoding="ascii") as schedstat:
                nanoseconds += int(schedstat.read().split()[0])
        return nanoseconds / 1e9

    def peak_mib(self):
        with open("/proc/%d/status" % self.pid, encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self):
        """Its ledger, after its end; `text` and `seconds` are then known too."""
        self.text = self.process.communicate(timeout=60)[1].decode()
        self.seconds = time.monotonic() - self.started
        if self.process.returncode != 0:
            raise RuntimeError(self.text)
        with open(self.stats, encoding="utf-8") as stats:
            ledger = json.load(stats)
        self.folder.cleanup()
        return ledger
