# SPDX-License-Identifier: BSD-2-Clause
"""Stand-ins (tests/standin) for interpreters that are not available: how they are built, and their output."""

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
    """moved: a release of a known minor version with moved fields.  NEWEST + 1, which is newer than every
    table, has moved fields, too.  jit: built with a JIT."""

    @property
    def name(self):
        return "3.%d%s%s%s-standin" % (self.minor, "t" if self.threaded else "",
                                       "-moved" if self.moved else "", "-jit" if self.jit else "")


# Released, but not available as a binary.
UNAVAILABLE = [Build(minor, True) for minor in (14, NEWEST)]


def each(builds):
    """Test parameters.  The newest free-threaded build is in `make test`, the others in part interpreters."""
    return [pytest.param(build, id=build.name,
                         marks=[pytest.mark.prove("interpreters")] * (build != UNAVAILABLE[-1]))
            for build in builds]


def headers_for(build, folder):
    """The folder of a build's headers, possibly changed ones, and the parent of the original; None if
    there are no headers."""
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
    """The path of the stand-in for that build; None if there are no headers."""
    found = headers_for(build, folder)
    if not found:
        return None
    headers, beside = found
    path = os.path.join(folder, "interpreter")
    # The headers' initializers refer to symbols that only CPython defines; the linker ignores them.
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
    """The stacks that the stand-in reports for the threads NUMBERS, as tuples of (name, file, line)."""
    return {tuple((name, file_of(path), line or None) for name, path, line in stack)
            for number in numbers for stack in said[number]}


def places(frames):
    return tuple((frame.name, frame.file, frame.line) for frame in frames)


def seen(run):
    """{stack: samples} of the run's Python stacks."""
    counts = collections.Counter()
    for frames, count in run.stacks:
        if frames[0].file:
            counts[places(frames)] += count
    return counts
