# SPDX-License-Identifier: BSD-2-Clause
"""The walk over native frames, compared with libdwfl's, and its cost."""

import json
import os
import subprocess
import sys

import pytest

from conftest import ROOT, wait_used
from pythons import find_pythons

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import kernel_cost  # noqa: E402

STOPS = int(os.environ.get("NATIVE_STOPS", 2_000))
THREADS = 2


@pytest.mark.prove("native")
@pytest.mark.proves("equal to libdwfl")
@pytest.mark.pythons(which=find_pythons)
def test_equal_to_libdwfl(python, target, tool, figure, measured):
    """Threads are stopped anywhere: both unwinders find the same stack.  Only where code has no unwind data
    may ours end while libdwfl goes on by a guess."""
    program = target(python, "mixed.py", THREADS)
    found = json.loads(subprocess.check_output([tool("unwind_check"), str(program.pid), str(STOPS), "1"]))
    kinds = ("equal", "shorter", "longer", "different")
    assert sum(sum(found[kind].values()) for kind in kinds) == found["stops"] == STOPS
    whole = found["equal"].pop("whole", 0)
    broken = found["equal"].pop("no_rows", 0) + found["shorter"].pop("no_rows", 0)
    others = {kind: found[kind] for kind in kinds if found[kind]}
    figure("{:,} of {:,}".format(whole, STOPS))
    measured("stacks equal to libdwfl's, " + python.name,
             "{:,} of {:,}, {:.0f} frames each; {} end in code without unwind data; others: {}".format(
                 whole, STOPS, found["frames"] / STOPS, broken, json.dumps(others) if others else "none"),
             "all but those")
    assert not others, found["differences"]
    assert whole > 0.9 * STOPS


SECONDS = 10
# Longer than a process's first second, in which each sample costs more: it tells code objects apart.
SETTLING_SECONDS = 1.5


def measure_cost(profile, pid, *options):
    """Nanoseconds per sample in the kernel, and the ledger."""
    run = profile.start("-p", pid, *options)
    run.wait_sampling()
    wait_used(SETTLING_SECONDS, pid)
    first = kernel_cost.read(run.pid)
    wait_used(SECONDS, pid)
    last = kernel_cost.read(run.pid)
    run.interrupt().load()
    # A run of the BPF program in another process ends at once.
    met = run.ledger["events"] / last.runs
    return (last.nanoseconds - first.nanoseconds) / (last.runs - first.runs) / met, run.ledger


@pytest.mark.alone
@pytest.mark.prove("native")
@pytest.mark.parametrize("rate", [99, 999])
def test_cost(any_python, target, profile, measured, rate):
    """Reported only."""
    pid = target(any_python, "mixed.py", THREADS).pid
    with kernel_cost.statistics():
        for options in ([], ["-n"], ["-n", "-k"]):
            nanoseconds, ledger = measure_cost(profile, pid, "-r", rate, *options)
            measured("{} Hz {}, {}".format(rate, " ".join(options) or "Python only", any_python.name),
                     "{:.1f} us a sample in the kernel; {:,} samples, {:,} distinct stacks, {} lost".format(
                         nanoseconds / 1000, ledger["samples"], ledger["stacks"], ledger["lost"]))
