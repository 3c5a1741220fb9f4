#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `-a` costs with many processes, threads, stacks and starts, and at higher rates.

Each of these is doubled four times, while the others stay constant.  Then comes everything at once:
500 Pythons with 5,000 threads, and 100 starts per second; and the cost of the agent beside that.
The figures go to the last part of RESULTS.md.
"""

import argparse
import collections
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import kernel_cost
import results
from processes import BINARY, HERE, PROGRAMS, ROOT, peak_mib

PYTHON = "/usr/bin/python3"
START_TIMEOUT_S = 60
SPINNERS = 2
WINDOWS = 9
TICKS = os.sysconf("SC_CLK_TCK")

Load = collections.namedtuple("Load", "processes threads stacks busy starts rate")
BASE = Load(processes=32, threads=10, stacks=16, busy=0.5, starts=0, rate=99)
WHOLE = BASE._replace(processes=500, starts=100)
AGENT_RATE = 19
LONG = 5

DOUBLED = {
    "processes": [BASE._replace(processes=32 << i, threads=1) for i in range(5)],
    "threads": [BASE._replace(threads=10 << i) for i in range(5)],
    "stacks": [BASE._replace(stacks=16 << i) for i in range(5)],
    "starts": [BASE._replace(starts=6 << i) for i in range(5)],
    "rate": [BASE._replace(rate=99 << i) for i in range(5)],
}

HEAD = ["processes", "threads", "ways", "starts per second", "Hz", "CPU", "followed", "a sample",
        "memory", "samples", "stacks", "lost"]

TEXT = """\
## Many processes: `-a`

Made by `make bench-scale` on %(date)s: %(cpus)d CPUs, Linux %(kernel)s. The load is forked Pythons. Their
threads sleep most of the time, and together work half a second per second. *Ways*: distinct stacks, not
counted per thread. *CPU*: the profiler's own, of one core, after its first %(settling)d s. In the last line
it is after its first %(long)d s, when it has seen most of these processes work. *Followed*: the cost of forks,
execs, mappings and ends in the kernel, of one core. *A sample*: the walk in the kernel. *Memory*: the peak.
*Starts*: of ten, seven fork, one runs Python, and two run other programs.

%(table)s
A sample of a process that is not Python costs %(other).0f ns: one lookup.

`pybpfprof agent --store DIR` beside the last of these loads, %(agent_hz)d Hz, windows of 10 s:
%(agent_cpu).2f %% of all CPUs, and %(agent_walk).2f %% in the kernel for samples and to follow processes;
%(agent_memory).0f MiB at most.

Published, not measured here: the OpenTelemetry eBPF profiler's README gives 1 %% of the CPU and 250 MB
as its upper limits in testing, at 20 Hz. Its design documents give 3 us per sample. Users have reported up
to 1.5 GB, and spikes of CPU when it starts.
"""


class Crowd:
    """crowd.py, ready."""

    def __init__(self, load):
        words = [load.processes, load.threads, load.stacks, load.busy, load.starts]
        self.process = subprocess.Popen(
            [PYTHON, os.path.join(PROGRAMS, "crowd.py"), *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not self.process.stdout.readline().startswith(b"ready"):
            sys.exit("crowd.py did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Profiler:
    """A running profiler with these arguments, which samples already."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([BINARY, *arguments, "-q"])
        self.pid = self.process.pid
        deadline = time.monotonic() + START_TIMEOUT_S
        while not kernel_cost.read(self.pid).runs:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                sys.exit("the profiler did not start")
            time.sleep(0.1)

    def cpu_seconds(self):
        """The CPU time of all its threads, including ended ones."""
        with open("/proc/%d/stat" % self.pid, encoding="ascii") as stat:
            words = stat.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / TICKS

    def mark(self):
        return (time.monotonic(), self.cpu_seconds(), kernel_cost.read(self.pid),
                kernel_cost.read(self.pid, kernel_cost.TRACING))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Recording(Profiler):
    def __init__(self, rate, folder, chosen=("-a",)):
        self.stats = os.path.join(folder, "stats.json")
        super().__init__(*chosen, "-r", str(rate), "-f", "folded", "-o",
                         os.path.join(folder, "all.folded"), "--stats", self.stats)

    def stop(self):
        """Ends the recording; returns its ledger."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(START_TIMEOUT_S)
        with open(self.stats, encoding="utf-8") as stats:
            return json.load(stats)


Used = collections.namedtuple("Used", "cpu followed sampled sample_ns")


def window(profiler, seconds):
    """What the profiler used in a window: of a core; of a core in the kernel, for following
    processes and for samples; and per sample."""
    before = profiler.mark()
    time.sleep(seconds)
    after = profiler.mark()
    passed = after[0] - before[0]
    walks = after[2].runs - before[2].runs
    walks_ns = after[2].nanoseconds - before[2].nanoseconds
    return Used((after[1] - before[1]) / passed,
                (after[3].nanoseconds - before[3].nanoseconds) / 1e9 / passed,
                walks_ns / 1e9 / passed, walks_ns / max(walks, 1))


def measure(load, settling, seconds):
    with Crowd(load), tempfile.TemporaryDirectory() as folder, \
            Recording(load.rate, folder) as profiler:
        time.sleep(settling)
        used = window(profiler, seconds)
        peak = peak_mib(profiler.pid)
        ledger = profiler.stop()
    return {**load._asdict(), "cpu": used.cpu, "followed": used.followed, "walk_ns": used.sample_ns,
            "memory": peak, "samples": ledger["samples"], "distinct": ledger["stacks"], "lost": ledger["lost"],
            "ledger": ledger}


def measure_others(seconds):
    """Nanoseconds per sample of processes that are not Python; the only profiled one sleeps.  It
    is the median of short windows, because a host may delay any sample."""
    words = [["sh", "-c", "while :; do :; done"]] * SPINNERS
    words.append([PYTHON, "-c", "import time; time.sleep(1000)"])
    others = [subprocess.Popen(command) for command in words]
    try:
        time.sleep(1)
        with tempfile.TemporaryDirectory() as folder, \
                Recording(WHOLE.rate, folder, ("-p", str(others[-1].pid))) as profiler:
            walks = [window(profiler, seconds / WINDOWS).sample_ns for _ in range(WINDOWS)]
    finally:
        for other in others:
            other.kill()
            other.wait()
    return statistics.median(walks)


def measure_agent(settling, seconds):
    """The agent's cost beside everything at once, as shares of all CPUs."""
    with Crowd(WHOLE), tempfile.TemporaryDirectory() as folder, \
            Profiler("agent", "--store", os.path.join(folder, "store"), "--listen", "off",
                     "--cpu-budget", "off", "-r", str(AGENT_RATE)) as agent:
        time.sleep(settling)
        used = window(agent, seconds)
        memory = peak_mib(agent.pid)
    return {"agent_hz": AGENT_RATE, "agent_cpu": 100 * used.cpu / os.cpu_count(),
            "agent_walk": 100 * (used.sampled + used.followed) / os.cpu_count(),
            "agent_memory": memory}


def line(figures):
    return ["%d" % figures["processes"], "%d" % (figures["processes"] * figures["threads"]),
            "%d" % figures["stacks"], "%d" % figures["starts"], "%d" % figures["rate"],
            "%.1f %%" % (100 * figures["cpu"]), "%.2f %%" % (100 * figures["followed"]),
            "%.1f us" % (figures["walk_ns"] / 1000), "%.0f MiB" % figures["memory"],
            "%d" % figures["samples"], "%d" % figures["distinct"], "%d" % figures["lost"]]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter windows; RESULTS.md stays")
    parser.add_argument("--only", action="append", choices=[*DOUBLED, "all"],
                        help="only these (may be repeated); RESULTS.md stays")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if os.geteuid() != 0:
        sys.exit("not root; run: sudo make bench-scale")
    settling, seconds = (2, 3) if arguments.quick else (4, 6)
    loads = [load for name, doubled in DOUBLED.items() for load in doubled
             if name in (arguments.only or DOUBLED)]
    loads = [(load, 1) for load in loads]
    if "all" in (arguments.only or ["all"]):
        loads += [(WHOLE, 1), (WHOLE, LONG)]
    found = []
    print("  ".join(HEAD))
    with kernel_cost.statistics():
        for load, times in loads:
            found.append(measure(load, times * settling, times * seconds))
            print("  ".join(line(found[-1])), flush=True)
        other = measure_others(seconds)
        # Several of the agent's windows: their ends cost most.
        agent = measure_agent(LONG * settling, 2 * LONG * seconds)
    print("a sample of no Python: %.0f ns" % other)
    print("the agent: %(agent_cpu).2f %% of all CPUs, %(agent_walk).2f %% in the kernel, "
          "%(agent_memory).0f MiB" % agent)
    results.write(os.path.join(ROOT, ".output", "scale.json"), json.dumps(found, indent=2) + "\n")
    if arguments.quick or arguments.only:
        return
    text = TEXT % {"date": time.strftime("%Y-%m-%d"), "cpus": len(os.sched_getaffinity(0)),
                   "kernel": os.uname().release, "settling": settling,
                   "long": LONG * settling, "other": other,
                   "table": results.table([HEAD] + [line(figures) for figures in found]), **agent}
    results.keep_part(os.path.join(HERE, "RESULTS.md"), text)


if __name__ == "__main__":
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
