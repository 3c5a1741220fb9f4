# SPDX-License-Identifier: BSD-2-Clause
"""Machines with other kernels, for test_kernels.py and test_all_kernels.py; tests/kernels/ makes them.

Such a test file has MACHINES, and a fixture `initrd`: initrd(CONTENTS) makes the image of those with these contents.
"""

import concurrent.futures
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
from debian import Failure, Unreachable  # noqa: E402 (its folder is in the path by now: debian_kernels.py)
from debian_kernels import NEWEST  # noqa: E402

AT_ONCE = 2
PROFILER = "/usr/bin/pybpfprof"
OUTPUTS = ["-f", "folded", "-o", "/tmp/profile", "--stats", "/tmp/stats"]


def describe(command, nice, totals=None, capabilities=None):
    return {"command": command, "nice": nice, "totals": totals, "capabilities": capabilities}


def describe_job(command, programs=(), first="", capabilities=None, besides=(), environment=(), kernel="",
                 architecture=""):
    """BESIDES: {a kernel: the capabilities that are held there as well}."""
    return {"command": command, "programs": list(programs), "first": first,
            "capabilities": capabilities, "besides": dict(besides), "environment": dict(environment),
            "kernel": kernel, "machine": architecture}


def build_image(folder, binary, contents, jobs, files=(), texts=()):
    """The path of an image with the profiler, what was built for its jobs, and these."""
    output = os.path.join(os.path.dirname(binary), contents.OUTPUT)
    built = {"/" + name: os.path.join(output, name) for name in contents.BUILT}
    return image.build(folder, contents, {PROFILER: os.path.join(output, "pybpfprof"), **built, **dict(files)},
                       {"/jobs.json": json.dumps(jobs), **dict(texts)})


def what_is_missing(described, binary):
    """What the machine cannot be without; "" where all is there."""
    output = os.path.join(os.path.dirname(binary), described.contents.OUTPUT)
    built = [os.path.join(output, name) for name in described.contents.BUILT]
    return ", ".join([name for name in described.architecture.EMULATOR[:1] if not shutil.which(name)] +
                     described.contents.missing() +
                     [path for path in built if not os.path.exists(path)])


def stacks_of(result, part):
    """The stacks of one program of several, each without its process."""
    root = "process %d:" % part["pid"]
    return [(frames[1:], count) for frames, count in parse_folded(result["profile"])
            if frames[0].label.startswith(root)]


class Kernel:
    """What a machine with one kernel has done."""

    def __init__(self, described, initrd, lacking=""):
        if lacking:
            raise Failure("no " + lacking)
        self.machine = described
        self.release = debian_kernels.release(machine.fetch_kernel(described))
        began = time.monotonic()
        self.results, self.console = machine.run_jobs(described, initrd)
        self.time = "%s %.1f %.1f" % (self.release, began, time.monotonic())
        self.pythons = described.contents.pythons()

    def result(self, name):
        """A job's result; it must have been over."""
        assert name in self.results, "did not run to its end: " + self.console[:2000]
        return self.results[name]

    def succeeded(self, name):
        """The same; the profiler must have ended well."""
        result = self.result(name)
        assert result["status"] == 0, result["output"]
        return result

    def ledger(self, name="profile"):
        return json.loads(self.succeeded(name)["stats"])


def result_of(name, future):
    """A kernel, which may not be there to be had."""
    try:
        return future.result()
    except Unreachable as reason:
        pytest.skip("kernel %s cannot be fetched: %s" % (name, reason))
    except Failure as reason:
        missing("kernel %s (%s)" % (name, reason))


@pytest.fixture(scope="module")
def kernels(request, binary, initrd):
    """{name: the Kernel to come} of all that the file's selected tests want, some at once; the newest, which
    has most to do, first."""
    wanted = [getattr(item, "callspec", None) for item in request.session.items
              if item.module is request.module and "kernels" in item.fixturenames]
    machines = {name: described for name, described in request.module.MACHINES.items()
                if None in wanted or any(name == call.params["kernel"] for call in wanted)}
    lacking = {name: what_is_missing(described, binary) for name, described in machines.items()}
    images = {contents: initrd(contents) for contents in
              {described.contents for name, described in machines.items() if not lacking[name]}}
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    yield {name: pool.submit(Kernel, machines[name], images.get(machines[name].contents), lacking[name])
           for name in sorted(machines, key=lambda name: name != NEWEST)}
    pool.shutdown(cancel_futures=True)


def why_not_legal(stacks, python):
    """What is wrong with stacks of deep.py, {reason: samples}; how many have frames, and what is said of those
    that have none, {label: samples}."""
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
