# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernels, from the oldest that is supported to the newest, each in a machine of its own.

All Pythons run three programs there, which one profile has all of; tests/kernels/ makes it happen.
"""

import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT, check_ledger, missing, parse_folded
from legal import DeepLegal

sys.path.insert(0, os.path.join(ROOT, "tests", "kernels"))
import debian_kernels  # noqa: E402
import image  # noqa: E402
import machine  # noqa: E402

pytestmark = pytest.mark.timeout(1800)

AT_ONCE = 2
SECONDS, RATE = 6, 999
DEPTH = 1000
FUNCTIONS = ("alpha", "beta", "gamma", "delta", "epsilon")
BASELINE = os.path.join(ROOT, "tests", "kernels", "verifier_cost.json")
MOST_OF_BASELINE = 1.10
VERIFIED = re.compile(r"^verifier: (\w+) (\d+)$", re.MULTILINE)


def describe(command, nice, totals=None):
    return {"command": command, "nice": nice, "totals": totals}


def make_jobs(pythons):
    """The profile of everything, in which shares need most samples; then what loading costs."""
    programs = []
    for python in pythons:
        command = image.guest_command(python)
        totals = "/tmp/totals-" + python.name
        programs += [describe(command + ["/programs/shares.py", totals, "10", "free"], 0, totals),
                     describe(command + ["/programs/deep.py"], 5),
                     describe(command + ["/programs/depth.py", str(DEPTH)], 10)]
    busy = describe(["/agent", "/programs/busy.py"], 0)
    return [{"programs": programs, "arguments": ["-d", str(SECONDS), "-r", str(RATE)],
             "environment": {}},
            {"programs": [busy], "arguments": ["-d", "0.5"],
             "environment": {"LD_PRELOAD": "/verifier_cost.so"}}]


class Kernel:
    """What a machine with one kernel has done."""

    def __init__(self, name, initrd, folder):
        path = debian_kernels.fetch(name)
        self.release = debian_kernels.release(path)
        results, self.console = machine.run_jobs(path, initrd, folder)
        self.profile, self.cost = (results + [None, None])[:2]
        self.pythons = machine.guest_pythons()

    def succeeded(self, result):
        """A job's result; the profiler must have ended well."""
        assert result, "did not run to its end: " + self.console[:2000]
        assert result["status"] == 0, result["output"]
        return result

    def ledger(self):
        return json.loads(self.succeeded(self.profile)["stats"])

    def stacks(self, python, program):
        """The stacks of one program, each without its process, and the CPU time of its parts."""
        result = self.succeeded(self.profile)
        index = 3 * self.pythons.index(python) + ("shares", "deep", "depth").index(program)
        part = result["programs"][index]
        root = "process %d:" % part["pid"]
        return [(frames[1:], count) for frames, count in parse_folded(result["profile"])
                if frames[0].label.startswith(root)], part["used"]


@pytest.fixture(scope="session")
def kernels(request, binary, require, tmp_path_factory):
    """{name: the Kernel to come} of all that are selected, some at once."""
    for tool in machine.ARCHITECTURE.EMULATOR[0], "busybox", "cpio":
        require(tool)
    names = {item.callspec.params["kernel"] for item in request.session.items
             if "kernels" in item.fixturenames}
    pythons = machine.guest_pythons()
    preloaded = os.path.join(os.path.dirname(binary), "verifier_cost.so")
    files = {"/usr/bin/pybpfprof": binary, "/verifier_cost.so": preloaded}
    initrd = image.build(str(tmp_path_factory.mktemp("image")), files, pythons, make_jobs(pythons))
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    yield {name: pool.submit(Kernel, name, initrd, str(tmp_path_factory.mktemp("machine")))
           for name in debian_kernels.SUITES if name in names}
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session", params=debian_kernels.SUITES)
def kernel(request, kernels):
    try:
        return kernels[request.param].result()
    except debian_kernels.debian.Unreachable as reason:
        pytest.skip("kernel %s cannot be fetched: %s" % (request.param, reason))
    except debian_kernels.debian.Failure as reason:
        missing("kernel %s (%s)" % (request.param, reason))


@pytest.mark.parametrize("wanted", machine.WANTED, ids=lambda wanted: "%d.%d" % wanted)
def test_python_is_there(wanted):
    if not any(python.version[:2] == wanted for python in machine.guest_pythons()):
        pytest.skip("no Python %d.%d here" % wanted)


def test_ledger(kernel):
    ledger = kernel.ledger()
    check_ledger(ledger)
    assert ledger["lost"] == ledger["truncated"] == 0
    assert ledger["python"] >= 0.99 * ledger["samples"] > 1000
    counted = sum(count for _, count in parse_folded(kernel.profile["profile"]))
    assert counted == ledger["samples"]


@pytest.mark.proves("kernels")
@pytest.mark.pythons(which=machine.guest_pythons)
def test_shares(kernel, python, figure):
    """Chance alone puts one of the 100 shares here outside 5 standard errors in 20,000 runs."""
    stacks, used = kernel.stacks(python, "shares")
    counts = [sum(count for frames, count in stacks
                  if any(frame.name == name for frame in frames)) for name in FUNCTIONS]
    total = sum(counts)
    assert total > 100
    for name, count, seconds in zip(FUNCTIONS, counts, used):
        share = seconds / sum(used)
        error = math.sqrt(share * (1 - share) / total)
        assert abs(count / total - share) <= 5 * error, (name, count / total, share)
    figure(kernel.release.partition("-")[0])


@pytest.mark.pythons(which=machine.guest_pythons)
def test_no_stack_that_never_was(kernel, python):
    legal = DeepLegal(python, roots=("<module>", "work"))
    stacks, _ = kernel.stacks(python, "deep")
    wrong = {}
    whole = 0
    for frames, count in stacks:
        if frames[-1].file is None:
            continue
        whole += count
        reason = legal.why_not(frames)
        if reason:
            wrong[reason] = wrong.get(reason, 0) + count
    assert wrong == {}
    # With one CPU and 2.7's lock, a new thread may wait long before it first runs any Python.
    wanted = 0.9 if python.version < (3,) else 0.98
    assert whole >= wanted * sum(count for _, count in stacks) > 50


@pytest.mark.pythons(which=machine.guest_pythons)
def test_1000_frames_are_whole(kernel, python):
    stacks, _ = kernel.stacks(python, "depth")
    assert sum(count for _, count in stacks) > 5
    for frames, _ in stacks:
        own = [frame.name for frame in frames if frame.file.endswith("depth.py")]
        assert own == ["descend"] * DEPTH + ["bottom"]
        assert frames[0].short.lstrip("_") == "bootstrap"


def version(text):
    return [int(number) for number in re.findall(r"\d+", text)[:2]]


def test_verifier_cost(kernel, require, capsys):
    """Instructions that the verifier looks at, of the million that it will; without a baseline for
    a kernel's version, that of the last one before."""
    found = {name: int(count)
             for name, count in VERIFIED.findall(kernel.succeeded(kernel.cost)["output"])}
    compiler = re.search(r"clang version (\d+)", subprocess.run(
        [require("clang"), "--version"], stdout=subprocess.PIPE, universal_newlines=True,
        check=True).stdout).group(1)
    with open(BASELINE, encoding="utf-8") as file:
        baselines = json.load(file).get("clang " + compiler)
    if not baselines:
        pytest.skip("no baseline for what clang %s compiles" % compiler)
    known = max((key for key in baselines if version(key) <= version(kernel.release)), key=version)
    with capsys.disabled():
        print("\nverifier, %s: %s instructions; %s: %s" % (kernel.release, found, known,
                                                           baselines[known]))
    assert found.keys() == baselines[known].keys()
    for name, count in found.items():
        assert count <= MOST_OF_BASELINE * baselines[known][name], name
