# SPDX-License-Identifier: BSD-2-Clause
"""Rows of a kind of their own: the first sample, names, and processes that live shortly."""

import os
import re
import subprocess
import tempfile
import time

import figures
from processes import PROGRAMS, WORKLOADS, Failed, Run, Target
from tools import Wanted

RATE = 1000
START_TIMEOUT_S = 15
SLOT_MS = 10  # of clock.py
SLOT = re.compile(r"slot_(\d+)")

# What names.py's functions are called; a qualified name's last part is the name alone.
NAMES = ("plain", "Outer.method", "Outer.class_method", "Outer.static_method", "Outer.value",
         "Outer.Inner.__call__", "enclosing.<locals>.nested", "<lambda>", "produce", "x" * 4096,
         "functions.<locals>.coroutine", "functions.<locals>.café", "functions.<locals>.функция",
         "functions.<locals>.関数", "functions.<locals>.𐌰𐌱", "functions.<locals>.Größe.測る")

CHILD = re.compile(r"child_(\d+)")
CHILD_RATE = 100
CHILD_SECONDS = 0.05
CHILDREN_TIMEOUT_S = 60


def run_for(tool, target, rate, seconds, timeout):
    """One run of a profiler: its stacks, and the time it took beyond SECONDS."""
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
    """{profiler's name: (ms to its first sample, s a run takes longer than it samples)}, medians;
    or the reason why it cannot."""
    found = {tool.name: ([], []) for tool in tools}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for tool in tools:
                if isinstance(found[tool.name], str):
                    continue
                # A new one each time: what was killed may have left it stopped.
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
    """{profiler's name: (names that are right, qualified ones, of how many)}, or the reason."""
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


def spawn_under(tool, target, folder, lead):
    wanted = Wanted(target.pid, CHILD_RATE, None, folder, True)
    run = Run(tool.command(wanted), tool.prefix)
    try:
        run.watch(run.go() + lead)
        target.go()
        try:
            target.process.wait(CHILDREN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failed("the children were not over after %d s" % CHILDREN_TIMEOUT_S) from None
        run.finish(START_TIMEOUT_S)
        return run.stacks(tool.read, wanted)
    finally:
        run.end()


def measure_children(python, tools, leads, count):
    """{profiler's name: (share of the processes that it named, of the samples due in them)}, or
    the reason."""
    found = {}
    for tool in tools:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as files:
            target = Target(python, files, os.path.join(WORKLOADS, "spawn.py"),
                            (count, CHILD_SECONDS), pinned=False, flags=tool.options)
            try:
                samples = {}
                for frames, number, _ in spawn_under(tool, target, folder, leads[tool.name] + 0.3):
                    for frame in frames:
                        match = CHILD.fullmatch(frame.short)
                        if match:
                            samples[match[1]] = samples.get(match[1], 0) + number
                if not samples:
                    raise Failed("does not follow the processes that a target starts")
                due = count * CHILD_SECONDS * CHILD_RATE
                found[tool.name] = len(samples) / count, sum(samples.values()) / due
            except (Failed, OSError, ValueError) as reason:
                found[tool.name] = str(reason)
            finally:
                target.end()
    return found
