# SPDX-License-Identifier: BSD-2-Clause
"""Folded stacks: each line has frames, root first, and a count."""

import re

FRAME = re.compile(r"(?P<name>.*) \((?P<file>.*?)(?::(?P<line>\d+))?\)", re.DOTALL)


class Frame:
    """One frame of a folded stack: name, file and line (None if absent)."""

    def __init__(self, label):
        match = FRAME.fullmatch(label)
        self.label = label
        self.name = match["name"] if match else label
        self.file = match["file"] if match else None
        self.line = int(match["line"]) if match and match["line"] else None

    @property
    def short(self):
        """The last part of the qualified name, which is co_name."""
        return self.name.rpartition(".")[2]

    def __repr__(self):
        return self.label


def parse_folded(text):
    """[([Frame, ...] root first, count), ...]"""
    stacks = []
    known = {}
    for line in text.splitlines():
        labels, _, count = line.rpartition(" ")
        frames = [known.setdefault(label, Frame(label)) for label in labels.split(";")]
        stacks.append((frames, int(count)))
    return stacks


def stacks(path):
    """The stacks of the profile at PATH."""
    with open(path, encoding="utf-8") as file:
        return parse_folded(file.read())
