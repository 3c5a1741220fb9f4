# SPDX-License-Identifier: BSD-2-Clause
"""Stand-ins (tests/standin) for interpreters that cannot be had: how they are built, and what they say."""

import collections
import glob
import os
import shutil
import subprocess

import pytest

from headers import find_headers, make_next_version, move_fields

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standin")
NEWEST = 15


class Build(collections.namedtuple("Build", "minor threaded moved jit", defaults=(False, False))):
    """moved: a release of a known minor version with its fields elsewhere.  What is newer than every
    table, NEWEST + 1, has them elsewhere, too.  jit: it was built with one."""

    @property
    def name(self):
        return "3.%d%s%s%s-standin" % (self.minor, "t" if self.threaded else "",
                                       "-moved" if self.moved else "", "-jit" if self.jit else "")


# Released, but to be had as a binary nowhere.
UNAVAILABLE = [Build(minor, True) for minor in (14, NEWEST)]


def each(builds):
    """Parameters: the newest free-threaded one is in `make test`, the others in part interpreters."""
    return [pytest.param(build, id=build.name,
                         marks=[pytest.mark.prove("interpreters")] * (build != UNAVAILABLE[-1]))
            for build in builds]


def headers_for(build, folder):
    """The folder of a build's headers, and the one beside it; some are made up.  None where there are
    none."""
    real = min(build.minor, NEWEST)
    headers = find_headers(real)
    if not headers:
        return None
    if build.minor == real and not build.moved:
        return headers, os.path.dirname(headers)
    copy = os.path.join(folder, "python3.%d" % build.minor)
    shutil.copytree(headers, copy)
    if build.moved:
        move_fields(copy)
    else:
        make_next_version(copy, real)
    return copy, os.path.dirname(headers)


def build_standin(build, folder):
    """The path of the stand-in for that build; None where there are no headers."""
    found = headers_for(build, folder)
    if not found:
        return None
    headers, beside = found
    path = os.path.join(folder, "interpreter")
    # Most of what the headers' initializers refer to is in no program but CPython.
    command = [os.environ.get("CC", "cc"), "-w", "-O1", "-static", "-pthread", "-I", headers,
               "-I", os.path.join(headers, "internal"), "-I", beside,
               *sorted(glob.glob(os.path.join(FOLDER, "*.c"))),
               "-Wl,--unresolved-symbols=ignore-all", "-o", path]
    if build.threaded:
        command.append("-DPy_GIL_DISABLED=1")
    if build.jit:
        command.append("-DHAS_JIT")
    subprocess.run(command, check=True)
    return path


def expected(said, numbers, file_of=os.path.basename):
    """The stacks of the threads NUMBERS, as (name, file, line)."""
    return {tuple((name, file_of(path), line or None) for name, path, line in stack)
            for number in numbers for stack in said[number]}


def places(frames):
    return tuple((frame.name, frame.file, frame.line) for frame in frames)


def seen(run):
    """How often each stack of Python was sampled."""
    counts = collections.Counter()
    for frames, count in run.stacks:
        if frames[0].file:
            counts[places(frames)] += count
    return counts
