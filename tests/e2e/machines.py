# SPDX-License-Identifier: BSD-2-Clause
"""Emulated machines with other kernels, for test_kernels.py and test_all_kernels.py; tests/kernels/ builds them.

A test file that imports `kernels` defines MACHINES, and a fixture `initrd`: initrd(CONTENTS) builds an image.
"""

import concurrent.futures
import contextlib
import json
import os
import shutil
import sys
import time

import pytest

from conftest import ROOT, missing
from folded import parse_folded
from legal import DeepLegal

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))
import debian_kernels  # noqa: E402
import image  # noqa: E402
import machine  # noqa: E402
from debian import Failure, Unreachable  # noqa: E402 (debian_kernels.py adds its folder to the path)
from debian_kernels import NEWEST  # noqa: E402

AT_ONCE = 2
PROFILER = "/usr/bin/pybpfprof"
OUTPUTS = ["-f", "folded", "-o", "/tmp/profile", "--stats", "/tmp/stats"]


def describe(command, nice, totals=None, capabilities=None):
    return {"command": command, "nice": nice, "totals": totals, "capabilities": capabilities}


def describe_job(command, programs=(), first="", capabilities=None, besides=(), environment=(), kernel=""):
    """BESIDES: {kernel: additional capabilities for that kernel}."""
    return {"command": command, "programs": list(programs), "first": first,
            "capabilities": capabilities, "besides": dict(besides), "environment": dict(environment), "kernel": kernel}


def build_image(folder, binary, contents, jobs, files=(), texts=()):
    """The path of an image with the profiler, CONTENTS, JOBS, FILES and TEXTS (image.build())."""
    output = os.path.join(os.path.dirname(binary), contents.OUTPUT)
    built = {"/" + name: os.path.join(output, name) for name in contents.BUILT}
    return image.build(folder, contents, {PROFILER: os.path.join(output, "pybpfprof"), **built, **dict(files)},
                       {"/jobs.json": json.dumps(jobs), **dict(texts)})


def what_is_missing(described, binary):
    """Names what the emulated machine needs and this machine lacks; "" if nothing."""
    output = os.path.join(os.path.dirname(binary), described.contents.OUTPUT)
    built = [os.path.join(output, name) for name in described.contents.BUILT]
    return ", ".join([name for name in described.architecture.EMULATOR[:1] if not shutil.which(name)] +
                     described.contents.missing() +
                     [path for path in built if not os.path.exists(path)])


def why_not(described, binary):
    """The exception that explains why the machine cannot run, or None."""
    lacking = what_is_missing(described, binary)
    if lacking:
        return Failure("no " + lacking)
    try:
        machine.fetch_kernel(described)
    except (Failure, Unreachable) as reason:
        return reason
    return None


def stacks_of(result, part):
    """The stacks of PART, one of several programs, without their process frames."""
    root = "process %d:" % part["pid"]
    return [(frames[1:], count) for frames, count in parse_folded(result["profile"])
            if frames[0].label.startswith(root)]


class Kernel:
    """The results of a machine with one kernel."""

    def __init__(self, described, initrd, reason=None):
        """REASON: why_not()."""
        if reason:
            raise reason
        self.machine = described
        self.release = debian_kernels.release(machine.fetch_kernel(described))
        began = time.monotonic()
        self.results, self.console = machine.run_jobs(described, initrd)
        self.seconds = time.monotonic() - began
        self.pythons = described.contents.pythons()

    def result(self, name):
        """A job's result; the job must have ended."""
        assert name in self.results, "did not run to its end: " + self.console[:2000]
        return self.results[name]

    def succeeded(self, name):
        """A job's result; its profiler must have succeeded."""
        result = self.result(name)
        assert result["status"] == 0, result["output"]
        return result

    def ledger(self, name="profile"):
        return json.loads(self.succeeded(name)["stats"])


@contextlib.contextmanager
def fetching(name):
    """Skips the test if the kernel cannot be fetched."""
    try:
        yield
    except Unreachable as reason:
        pytest.skip("kernel %s cannot be fetched: %s" % (name, reason))
    except Failure as reason:
        missing("kernel %s (%s)" % (name, reason))


@pytest.fixture(scope="module")
def kernels(request, binary, initrd):
    """{name: Future of its Kernel} for all machines that the selected tests of the file use.  AT_ONCE of them run
    at once; the newest kernel, which has the most jobs, starts first."""
    wanted = [getattr(item, "callspec", None) for item in request.session.items
              if item.module is request.module and "kernels" in item.fixturenames]
    machines = {name: described for name, described in request.module.MACHINES.items()
                if None in wanted or any(name == call.params["kernel"] for call in wanted)}
    reasons = {name: why_not(described, binary) for name, described in machines.items()}
    images = {contents: initrd(contents) for contents in
              {described.contents for name, described in machines.items() if not reasons[name]}}
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    yield {name: pool.submit(Kernel, machines[name], images.get(machines[name].contents), reasons[name])
           for name in sorted(machines, key=lambda name: name != NEWEST)}
    pool.shutdown(cancel_futures=True)


def why_not_legal(stacks, python):
    """Judges stacks of deep.py.  Returns {reason: samples} of illegal stacks, the number of samples with frames,
    and {label: samples} of those without frames."""
    legal = DeepLegal(python, roots=("<module>", "work"))
    wrong, lacking, whole = {}, {}, 0
    for frames, count in stacks:
        if frames[0].file is None:
            lacking[frames[0].label] = lacking.get(frames[0].label, 0) + count
            continue
        whole += count
        reason = legal.why_not(frames)
        if reason:
            wrong[reason] = wrong.get(reason, 0) + count
    return wrong, whole, lacking
