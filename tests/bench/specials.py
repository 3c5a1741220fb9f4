# SPDX-License-Identifier: BSD-2-Clause
"""Special rows: the first sample, names, and short-lived processes."""

import itertools
import os
import re
import subprocess
import tempfile
import time

import figures
import judge
import measure
import rows
from processes import PROGRAMS, WORKLOADS, Failed, Run, Target, cpu_seconds, peak_mib
from tools import Wanted

RATE = 1000
START_TIMEOUT_S = 15
SLOT_MS = 10  # of clock.py
SLOT = re.compile(r"slot_(\d+)")

# The names of the functions of names.py.  The last part of a qualified name is the name alone.
NAMES = ("plain", "Outer.method", "Outer.class_method", "Outer.static_method", "Outer.value",
         "Outer.Inner.__call__", "enclosing.<locals>.nested", "<lambda>", "produce", "x" * 4096,
         "functions.<locals>.coroutine", "functions.<locals>.café", "functions.<locals>.функция",
         "functions.<locals>.関数", "functions.<locals>.𐌰𐌱", "functions.<locals>.Größe.測る")

CHILD = re.compile(r"child_(\d+)")
CHILDREN_TIMEOUT_S = 60
LOOK_SECONDS = 0.1


def run_for(tool, target, rate, seconds, timeout):
    """One run of a profiler: its stacks, and how much longer than SECONDS it took."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Wanted(target.pid, rate, seconds, folder, False)
        run = Run(tool.command(wanted), tool.prefix)
        try:
            target.write(time.monotonic())
            run.go()
            run.finish(timeout)
            return run.stacks(tool.read, wanted), run.seconds - seconds
        finally:
            run.end()


def measure_start(python, tools, rounds):
    """{profiler's name: (ms to its first sample, s a run takes longer than it samples)}, as
    medians; or the reason why it cannot."""
    found = {tool.name: ([], []) for tool in tools}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for tool in tools:
                if isinstance(found[tool.name], str):
                    continue
                # A new target each time: a killed profiler may have left the old one stopped.
                target = Target(python, folder, os.path.join(WORKLOADS, "clock.py"),
                                flags=tool.options)
                try:
                    stacks, beyond = run_for(tool, target, RATE, 1, START_TIMEOUT_S)
                    slots = [int(match[1]) for frames, _, _ in stacks for frame in frames
                             for match in [SLOT.fullmatch(frame.short)] if match]
                    if not slots:
                        raise Failed("no frame of the workload in its profile")
                    found[tool.name][0].append(min(slots) * SLOT_MS)
                    found[tool.name][1].append(beyond)
                except (Failed, OSError, ValueError) as reason:
                    found[tool.name] = str(reason)
                finally:
                    target.end()
    return {name: result if isinstance(result, str) else tuple(map(figures.median, result))
            for name, result in found.items()}


def measure_names(python, tools):
    """{profiler's name: (right names, right qualified names, all names)}, or the reason."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for tool in tools:
            target = Target(python, folder, os.path.join(PROGRAMS, "names.py"), flags=tool.options)
            try:
                stacks, _ = run_for(tool, target, RATE, 2, START_TIMEOUT_S)
                seen = {frame.name for frames, _, _ in stacks for frame in frames if frame.file}
                short = {name.rpartition(".")[2] for name in seen}
                found[tool.name] = (sum(name.rpartition(".")[2] in short for name in NAMES),
                                    sum(name in seen for name in NAMES), len(NAMES))
            except (Failed, OSError, ValueError) as reason:
                found[tool.name] = str(reason)
            finally:
                target.end()
    return found


def spawn(python, count, flags, folder):
    return Target(python, folder, rows.CHILDREN.path, (count, rows.CHILD_SECONDS), pinned=False,
                  flags=flags)


def spawn_alone(python, count):
    """Processes per second without a profiler."""
    with tempfile.TemporaryDirectory() as folder:
        target = spawn(python, count, (), folder)
        try:
            target.go()
            target.process.wait(CHILDREN_TIMEOUT_S)
            return count / target.read()[0]
        finally:
            target.end()


def watch_children(run, target, cell):
    """Waits for the last child.  The profiler's CPU use until shortly before is added to CELL.

    It rarely polls, because nothing polls children that run alone."""
    start, before = time.monotonic(), cpu_seconds(run.pid)
    seconds = used = 0
    target.go()
    while target.process.poll() is None:
        if seconds > CHILDREN_TIMEOUT_S:
            raise Failed("the children were not over after %d s" % CHILDREN_TIMEOUT_S)
        if run.process.poll() is None:
            seconds, used = time.monotonic() - start, cpu_seconds(run.pid) - before
            run.peak = max(run.peak, peak_mib(run.pid))
        try:
            target.process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    if seconds:
        cell.cpu.append(used / seconds)


def spawn_under(tool, python, count, lead, cell):
    """One run of a profiler: its stacks, and processes per second."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as files:
        target = spawn(python, count, tool.options, files)
        wanted = Wanted(target.pid, rows.CHILDREN.rate, None, folder, True)
        try:
            run = Run(tool.command(wanted), tool.prefix)
            try:
                run.watch(run.go() + lead)
                watch_children(run, target, cell)
                run.finish(START_TIMEOUT_S)
                return run.stacks(tool.read, wanted), count / target.read()[0]
            finally:
                run.end()
                cell.peak = max(cell.peak, run.peak)
        finally:
            target.end()


def without_process(frames):
    """Removes the entries without a file that some profilers put before a process's frames."""
    return list(itertools.dropwhile(lambda frame: frame.file is None, frames))


def add_children(found, cell, why_not, lines):
    """Adds the stacks of one round to CELL, and how many children have samples."""
    samples = {}
    for frames, number, _ in found:
        for frame in frames:
            match = CHILD.fullmatch(frame.short)
            if match:
                samples[match[1]] = samples.get(match[1], 0) + number
    if not samples:
        raise Failed("does not follow the processes that a target starts")
    judged = [(without_process(frames), number, weight) for frames, number, weight in found
              if any(map(judge.is_childs, frames))]
    cell.add_stacks(judged, rows.CHILDREN, why_not, lines)
    cell.named += len(samples)
    cell.in_children += sum(samples.values())


class Cell(measure.Cell):
    """Also counts the children with samples, those samples, and all children."""

    def __init__(self):
        super().__init__()
        self.named = self.in_children = self.count = 0

    def shares(self):
        """The share of the processes that have samples, and of the due samples those that it
        has."""
        due = self.count * rows.CHILD_SECONDS * rows.CHILDREN.rate
        return (self.named / self.count, self.in_children / due) if due else (None, None)


def measure_children(python, tools, leads, rounds, count):
    """{profiler's name: Cell}, and the ratios without a profiler, under None, for the noise."""
    cells = {tool.name: Cell() for tool in tools}
    why_not = rows.CHILDREN.judge(python)
    speeds = []
    for number in range(rounds):
        for tool in measure.in_turn(tools, number):
            cell = cells[tool.name]
            if cell.cannot:
                continue
            speeds.append((None, spawn_alone(python, count)))
            try:
                found, speed = spawn_under(tool, python, count, leads[tool.name] + 0.3, cell)
                add_children(found, cell, why_not, tool.lines)
                cell.count += count
                speeds.append((tool.name, speed))
            except (Failed, OSError, ValueError) as reason:
                cell.fail(str(reason))
    speeds.append((None, spawn_alone(python, count)))
    for cell in cells.values():
        cell.conclude()
    cells[None] = Cell()
    for name, ratios in figures.paired_ratios(speeds).items():
        cells[name].ratios = ratios
    return cells
