#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What profiling costs on each version: in the kernel, for the target, for the profiler itself.

Prints the figures of one Python of each version, and of free-threaded and JIT builds that exist,
and a table of them all, and writes them as JSON.  The target keeps PERCENT of its speed: the median
over pairs of adjacent windows, one of them with the profiler. "no profiler" shows the noise.
"""

import argparse
import contextlib
import glob
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import kernel_cost
from processes import BINARY, ROOT, WORKLOADS, Failed, Target, cpu_seconds, peak_mib

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from pythons import DEBUG, RELEASE, describe, find_uncommon, one_of_each_minor  # noqa: E402

RATES = (99, 999, 9999)
MANY_THREADS = 160
# At 9,999 Hz, stacks this deep are no longer identified in each sample.
FRAMES = (19, 49)
WANTED_CPU = {99: 0.3, 999: 2, 9999: 5}
WANTED_SPEED = {99: 99.7, 999: 99.0}
SETTLING_SECONDS = 0.3
FIRST_SECONDS = 4
END_TIMEOUT_S = 60


@contextlib.contextmanager
def workers(python, count=1, frames=49, threads=1):
    """COUNT workloads, each on a CPU of its own."""
    with tempfile.TemporaryDirectory() as folder:
        running = []
        try:
            for cpu in sorted(os.sched_getaffinity(0), reverse=True)[:count]:
                running.append(Target(python, folder, os.path.join(WORKLOADS, "nest.py"),
                                      (frames, threads)))
                os.sched_setaffinity(running[-1].pid, [cpu])
            yield running
        finally:
            for worker in running:
                worker.end()


class Profiler:
    """One run of the profiler on some workers."""

    def __init__(self, targets, rate, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.stats = os.path.join(self.folder.name, "stats.json")
        command = [BINARY, "-v", "--no-native", "-r", str(rate), "-o", os.path.join(self.folder.name, "out.html"),
                   "--stats", self.stats, *arguments]
        for target in targets:
            command += ["-p", str(target.pid)]
        self.started = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL)
        self.pid = self.process.pid

    def wait_sampling(self):
        """Returns once its perf events are open and its start-up is over."""
        folder = "/proc/%d/fd" % self.pid
        while self.process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if any("perf_event" in os.readlink(path) for path in glob.glob(folder + "/*")):
                    time.sleep(SETTLING_SECONDS)
                    return
            time.sleep(0.01)
        raise Failed(self.process.stderr.read().decode())

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self):
        """Waits for its end; returns its ledger.  Then `text` and `seconds` are set, too."""
        self.text = self.process.communicate(timeout=END_TIMEOUT_S)[1].decode()
        self.seconds = time.monotonic() - self.started
        if self.process.returncode != 0:
            raise Failed(self.text)
        with open(self.stats, encoding="utf-8") as stats:
            ledger = json.load(stats)
        self.folder.cleanup()
        return ledger


def measure_kernel(python, seconds):
    """Nanoseconds per sample at both depths, and per frame by their difference.  It begins once
    the profiler no longer identifies code objects in each sample, which it does in a
    process's first second."""
    cost = {}
    with kernel_cost.statistics():
        for frames in FRAMES:
            with workers(python, len(os.sched_getaffinity(0)), frames=frames) as targets:
                profiler = Profiler(targets, 9999)
                profiler.wait_sampling()
                time.sleep(FIRST_SECONDS)
                first = kernel_cost.read(profiler.pid)
                time.sleep(seconds)
                last = kernel_cost.read(profiler.pid)
                # Samples of other processes end at once.  Only the workers' are counted.
                met = profiler.stop()["events"] / last.runs
                cost[frames] = ((last.nanoseconds - first.nanoseconds)
                                / (last.runs - first.runs) / met)
    few, many = FRAMES
    a_frame = (cost[many] - cost[few]) / (many - few)
    wanted = 25 if python.version >= (3, 11) else 100
    return [("kernel, %d frames" % few, cost[few], "ns a sample", None),
            ("kernel, %d frames" % many, cost[many], "ns a sample",
             "< 1300" if wanted == 25 else None),
            ("kernel, one more frame", a_frame, "ns", "< %d" % wanted)]


def speed_kept(target, rate, pairs, window):
    """The median of the speed with the profiler, in percent of the speed without it.  If RATE is
    None, there is no profiler in either window."""
    ratios = []
    for pair in range(pairs):
        speeds = {}
        # The order of the two alternates between pairs, so drift cancels out.
        for profiled in ((True, False) if pair % 2 else (False, True)):
            profiler = Profiler([target], rate) if profiled and rate else None
            if profiler:
                profiler.wait_sampling()
            else:
                time.sleep(SETTLING_SECONDS)
            speeds[profiled] = target.speed(window)
            if profiler:
                profiler.stop()
        ratios.append(100 * speeds[True] / speeds[False])
    return statistics.median(ratios)


def measure_slow_down(python, pairs, window):
    figures = []
    for threads in (1, MANY_THREADS):
        with workers(python, threads=threads) as (target,):
            for rate in (None, *RATES):
                where = "" if threads == 1 else ", %d threads" % threads
                what = "no profiler" if rate is None else "%d Hz" % rate
                wanted = "> %.1f" % WANTED_SPEED[rate] if rate in WANTED_SPEED else None
                figures.append(("speed kept, " + what + where,
                                speed_kept(target, rate, pairs, window), "%", wanted))
    return figures


def measure_profiler(python, seconds):
    """The profiler's own CPU time and memory, and its lost samples, at each rate."""
    figures = []
    with workers(python) as targets:
        for rate in RATES:
            profiler = Profiler(targets, rate)
            profiler.wait_sampling()
            start, before = time.monotonic(), cpu_seconds(profiler.pid)
            time.sleep(seconds)
            used = (cpu_seconds(profiler.pid) - before) / (time.monotonic() - start)
            peak = peak_mib(profiler.pid)
            ledger = profiler.stop()
            whole = 100 * (ledger["python"] - ledger["truncated"]) / max(ledger["samples"], 1)
            figures += [("profiler's CPU, %d Hz" % rate, 100 * used, "% of a core",
                         "< %g" % WANTED_CPU[rate]),
                        ("profiler's memory, %d Hz" % rate, peak, "MiB", "< 40"),
                        ("samples, %d Hz" % rate, ledger["samples"], "", None),
                        ("lost, %d Hz" % rate, ledger["lost"], "", "0"),
                        ("whole Python stacks, %d Hz" % rate, whole, "%", "> 99.9")]
    return figures


def measure_start(python, runs):
    """Medians over a few runs of one second."""
    first, whole = [], []
    with workers(python) as targets:
        for _ in range(runs):
            profiler = Profiler(targets, 999, "-d", "1")
            profiler.finish()
            told = re.search(r"first sample.* ([\d.]+) ms", profiler.text)
            if not told:
                raise Failed("there was no sample in a second")
            first.append(float(told[1]))
            whole.append(profiler.seconds)
    return [("first sample after start", statistics.median(first), "ms", "< 150"),
            ("a run of one second", statistics.median(whole), "s", "< 1.5")]


# The parts that --only may name, in the order of measurement.
PARTS = {
    "kernel": lambda python, quick: measure_kernel(python, 2 if quick else 5),
    "slow-down": lambda python, quick: measure_slow_down(python, 3 if quick else 9,
                                                         0.5 if quick else 1),
    "profiler": lambda python, quick: measure_profiler(python, 3 if quick else 10),
    "start": lambda python, quick: measure_start(python, 2 if quick else 5),
}


def in_digits(value):
    return "%d" % value if isinstance(value, int) else "%.2f" % value


def measure(python, parts, quick):
    figures = []
    for part in parts:
        for name, value, unit, wanted in PARTS[part](python, quick):
            mark = "" if wanted is None else "wanted: %s" % wanted
            print(("  %-36s %12s %-12s %s" % (name, in_digits(value), unit, mark)).rstrip(),
                  flush=True)
            figures.append({"name": name, "value": value, "unit": unit, "wanted": wanted})
    return figures


def find_pythons():
    """One Python of each version, and those uncommon ones that exist; only part `interpreters`
    of `make prove` builds them."""
    common = one_of_each_minor()
    uncommon = [python for python in find_uncommon()
                if python and python.kind != DEBUG and python not in common]
    return sorted(common + uncommon,
                  key=lambda python: (python.version, python.kind != RELEASE, python.name))


def column_of(python):
    version = "%d.%d.%d" % python.version
    return version if python.kind == RELEASE else "%s, %s" % (version, python.kind)


def print_table(pythons, report):
    """A row for each figure, a column for each Python, as Markdown."""
    rows = [["what", *map(column_of, pythons)]]
    for same in zip(*report.values()):
        rows.append([("%(name)s, %(unit)s" % same[0]).rstrip(", ")] +
                    [in_digits(figure["value"]) for figure in same])
    widths = [max(map(len, column)) for column in zip(*rows)]
    rows.insert(1, ["-" * width for width in widths])
    print()
    for row in rows:
        print("| " + " | ".join(map(str.ljust, row, widths)) + " |")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter and fewer windows")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this part (may be "
                        "repeated)")
    parser.add_argument("--python", action="append", metavar="PATH",
                        help="only this Python (may be repeated), not each of those")
    parser.add_argument("--json", default=os.path.join(ROOT, ".output", "versions.json"),
                        metavar="FILE", help="where the figures go (%(default)s)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if not os.access(BINARY, os.X_OK):
        sys.exit("%s is not built: run make" % BINARY)
    if arguments.python:
        pythons = [describe(path, "given") or sys.exit("%s is no supported Python" % path)
                   for path in arguments.python]
    else:
        pythons = find_pythons()
    parts = [part for part in PARTS if part in (arguments.only or PARTS)]
    report = {}
    for python in pythons:
        print("Python %s (%s)" % (python.name, " ".join(python.command)), flush=True)
        report[python.name] = measure(python, parts, arguments.quick)
    with open(arguments.json, "w", encoding="utf-8") as output:
        json.dump({"kernel": os.uname().release, "cpus": len(os.sched_getaffinity(0)),
                   "quick": arguments.quick, "pythons": report}, output, indent=2)
        output.write("\n")
    print_table(pythons, report)
    print("figures: %s" % arguments.json)


if __name__ == "__main__":
    main()
