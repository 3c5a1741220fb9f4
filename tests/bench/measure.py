# SPDX-License-Identifier: BSD-2-Clause
"""Measures the profilers on a row: a run of each in turn, and the workload alone in between.

The workload is one process all the time, unless a profiler needs it to start with options.  Then
there are two processes, and one of them is always stopped.
"""

import collections
import signal
import tempfile
import time

import figures
import stacks
from processes import Failed, Run, Target, cpu_seconds
from tools import Wanted

ALONE_SECONDS = 0.5
WINDOW_SHARE = 0.8  # of a run's length
RUN_TIMEOUT_S = 12
END_SECONDS = 0.5  # after its last sample
LEAD_SECONDS = 0.05  # after its first sample, before the first look at its cost


class Cell:
    """The results of one profiler on one row, over all rounds."""

    def __init__(self):
        self.cannot = None
        self.failures = collections.Counter()
        self.ratios, self.cpu = [], []
        self.peak = self.due = self.samples = self.python = self.cut = self.wrong = 0
        self.deepest = 0
        self.weights, self.truth = collections.Counter(), None
        self.reasons = collections.Counter()

    def fail(self, reason):
        """Notes a failure.  A profiler that fails twice before any success cannot do the row."""
        self.failures[reason] += 1
        if not self.python and sum(self.failures.values()) > 1:
            self.cannot = reason

    def conclude(self):
        """After the last round: a profiler without results cannot do the row."""
        if not self.python and not self.cannot:
            if not self.failures:
                self.fail("no sample of its has a Python stack")
            self.cannot = next(iter(self.failures))

    def add_truth(self, used):
        self.truth = [a + b for a, b in zip(self.truth or [0] * len(used), used)]

    def add_stacks(self, found, row, why_not, lines):
        for frames, samples, weight in found:
            frames = stacks.without_shims(frames)
            self.samples += samples
            if not frames or frames[-1].file is None:
                continue
            self.python += samples
            self.deepest = max(self.deepest, len(frames))
            self.weights[innermost(frames, row.functions)] += weight
            if frames[0].short not in row.roots:
                self.cut += samples
                continue
            reason = why_not(frames, lines)
            if reason:
                self.wrong += samples
                self.reasons[reason] += samples


def innermost(frames, functions):
    return next((frame.short for frame in reversed(frames) if frame.short in functions), None)


class Bed:
    """A row's workload under one Python, by the options that a profiler needs it to have."""

    def __init__(self, row, python, folder):
        self.row, self.python, self.folder = row, python, folder
        self.targets = {}
        self.awake = None

    def target(self, options=()):
        """The workload with OPTIONS, running.  The other one is stopped."""
        if self.targets.get(options) is None or self.targets[options].process.poll() is not None:
            self.sleep()
            self.targets[options] = Target(
                self.python, self.folder, self.row.path, self.row.arguments,
                1 + len(self.row.functions) if self.row.turns else len(self.row.functions),
                self.row.pinned, options)
        if self.awake is not self.targets[options]:
            self.sleep()
            self.awake = self.targets[options]
        # A killed profiler may have left it stopped.
        self.awake.signal(signal.SIGCONT)
        return self.awake

    def sleep(self):
        if self.awake:
            self.awake.signal(signal.SIGSTOP)
        self.awake = None

    def end(self):
        for target in self.targets.values():
            target.end()


def cpu_times(row, shown):
    return shown[1:] if row.turns else shown


def run_once(tool, bed, lead, cell):
    """One run of a profiler: its stacks, and the workload's speed under it, in turns per second."""
    row, target = bed.row, bed.target(tool.options)
    with tempfile.TemporaryDirectory() as folder:
        wanted = Wanted(target.pid, row.rate, row.seconds, folder, False)
        run = Run(tool.command(wanted), tool.prefix)
        try:
            started = run.go()
            run.watch(started + lead)
            marks = [mark(run, target)]
            ended = run.watch(started + lead + WINDOW_SHARE * row.seconds)
            marks.append(mark(run, target))
            run.finish(RUN_TIMEOUT_S)
            found = run.stacks(tool.read, wanted)
        finally:
            run.end()
    before, after = marks
    seconds = after.time - before.time
    if not ended:
        cell.cpu.append((after.profiler - before.profiler) / seconds)
    cell.peak = max(cell.peak, run.peak)
    # One profiler counts its samples, not the time, and takes longer if it falls behind.
    late = run.seconds > lead + row.seconds + END_SECONDS
    sampled = run.seconds - lead if late else row.seconds
    cell.due += row.rate * sampled * (after.target - before.target) / seconds
    cell.add_truth([b - a for a, b in zip(cpu_times(row, before.shown),
                                          cpu_times(row, after.shown))])
    return found, (after.shown[0] - before.shown[0]) / seconds


Mark = collections.namedtuple("Mark", "time shown target profiler")


def mark(run, target):
    return Mark(time.monotonic(), target.read(), cpu_seconds(target.pid), cpu_seconds(run.pid))


def in_turn(tools, number):
    """The tools in the order of a round.  Each is first equally often."""
    return tools[number % len(tools):] + tools[:number % len(tools)]


def measure_row(row, python, tools, leads, rounds):
    """{profiler's name: Cell}, and the workload's own ratios, under None, for the noise."""
    cells = {tool.name: Cell() for tool in tools}
    why_not = row.judge(python)
    speeds = []
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(row, python, folder)
        try:
            for number in range(rounds):
                for tool in in_turn(tools, number):
                    if cells[tool.name].cannot:
                        continue
                    if row.turns:
                        speeds.append((None, bed.target().speed(ALONE_SECONDS)))
                    try:
                        found, speed = run_once(tool, bed, leads[tool.name], cells[tool.name])
                        cells[tool.name].add_stacks(found, row, why_not, tool.lines)
                        speeds.append((tool.name, speed))
                    except (Failed, OSError, ValueError) as reason:
                        cells[tool.name].fail(str(reason))
            if row.turns:
                speeds.append((None, bed.target().speed(ALONE_SECONDS)))
        finally:
            bed.end()
    for cell in cells.values():
        cell.conclude()
    cells[None] = Cell()
    for name, ratios in figures.paired_ratios(speeds).items():
        if row.turns:
            cells[name].ratios = ratios
    return cells
