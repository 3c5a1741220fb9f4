# SPDX-License-Identifier: BSD-2-Clause
"""Reads each profiler's output: (frames, samples, weight) of each stack, root first.

The weight is the profiler's, in its own unit.
"""

import collections
import functools
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from folded import Frame, parse_folded  # noqa: E402

# Symbols of -X perf have no lines.
PERF_SYMBOL = re.compile(r"py::(?P<name>.*):(?P<file>[^:]*)")

# CPython's own frames, which belong to no function.  Some profilers show them; they are no error.
SHIMS = ("__init__", "<shim>")

frame = functools.lru_cache(maxsize=None)(Frame)


def without_shims(frames):
    return [frame for frame in frames if frame.file not in SHIMS]


def frame_of(name, file, line):
    return frame("%s (%s:%s)" % (name, file, line))


def read(path):
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        return file.read()


def read_folded(path):
    """The format of pybpfprof and py-spy."""
    return [(frames, count, count) for frames, count in parse_folded(read(path))]


def parse_austin(text):
    """Austin's format, one sample per line: P1;T0:2;FILE:FUNCTION:LINE;...  MICROSECONDS"""
    found = []
    for line in text.splitlines():
        if line.startswith("P"):
            stack, _, weight = line.rpartition(" ")
            found.append(([austin_frame(label) for label in stack.split(";")[2:]], 1, int(weight)))
    return found


def austin_frame(label):
    file, name, line = (label.rsplit(":", 2) + ["", ""])[:3]
    return frame_of(name, file, line) if file else frame(label)


def parse_collapsed(text):
    """The format of CPython's own sampler: tid:1;FILE:FUNCTION:LINE;...  COUNT"""
    found = []
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = []
        for label in stack.split(";")[1:]:
            parts = label.split(":", 1)
            name, _, number = parts[-1].rpartition(":")
            frames.append(frame_of(name, parts[0], number) if name else frame(label))
        found.append((frames, int(count), int(count)))
    return found


def read_collapsed(folder):
    """The stacks of all processes.  Each process has a file."""
    return [stack for name in sorted(os.listdir(folder))
            for stack in parse_collapsed(read(os.path.join(folder, name)))]


def parse_perf(text):
    """The format of `perf script`, a paragraph per sample, leaf first.  Only Python's symbols
    are kept."""
    counts = collections.Counter()
    for paragraph in text.split("\n\n"):
        if paragraph.strip():
            labels = ["%(name)s (%(file)s)" % match.groupdict()
                      for match in map(PERF_SYMBOL.search, paragraph.splitlines()) if match]
            counts[tuple(reversed(labels))] += 1
    return [([frame(label) for label in labels], count, count) for labels, count in counts.items()]
