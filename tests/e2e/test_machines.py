# SPDX-License-Identifier: BSD-2-Clause
"""The machines of test_kernels.py and test_all_kernels.py: a kernel that cannot be fetched, a job that does not
end, and a compiler without a baseline."""

import collections
import os
import re
import subprocess
import sys

import pytest

from conftest import missing
from machine_jobs import OLDEST
from machines import machine, what_is_missing
from test_all_kernels import check_cost
from test_interpreters import FAKE_APT_GET

import guest  # machines.py has added its folder to the path

Kernel = collections.namedtuple("Kernel", "machine release")


@pytest.mark.parametrize("word, outcome, reason", [
    ("update", "SKIPPED", "kernel %s cannot be fetched: E: the reason"),
    ("download", "ERROR", "this machine can provide kernel %s (E: the reason), but it is missing"),
], ids=["unreachable", "failed"])
def test_kernels_that_cannot_be_fetched(tmp_path, word, outcome, reason):
    """If the mirror is unreachable, each kernel is skipped, even in CI, where no other skip is allowed.  A run
    without any kernel fails."""
    lacking = what_is_missing(machine.FEW_MACHINES[OLDEST], "")
    if lacking:
        missing(lacking)
    apt_get = tmp_path / "apt-get"
    apt_get.write_text(FAKE_APT_GET % word)
    apt_get.chmod(0o755)
    ended = subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=line",
                            os.path.join(os.path.dirname(__file__), "test_kernels.py")],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                           env=dict(os.environ, CI="true", PYBPFPROF_TEST_CACHE=str(tmp_path / "cache"),
                                    PATH="%s:%s" % (tmp_path, os.environ["PATH"])))
    assert ended.returncode == 1
    found = [line for line in ended.stdout.splitlines() if line.startswith(outcome)]
    for kernel in machine.FEW_MACHINES:
        assert any(reason % kernel in line for line in found), ended.stdout
    assert "FAILED tests/e2e/test_kernels.py::test_a_kernel_is_there" in ended.stdout
    assert " passed" not in ended.stdout


@pytest.mark.prove("kernels")
def test_a_job_that_does_not_end_reports_its_output(monkeypatch):
    monkeypatch.setattr(guest, "PATIENCE_S", 1)
    job = {"command": ["sh", "-c", "echo why not; exec sleep 60"], "capabilities": None, "environment": {}}
    assert guest.run_profiler(job, []) == (None, "why not\nnot over after 1 s")


def test_a_compiler_without_a_baseline():
    """The check fails, and says which numbers to add."""
    kernel = Kernel(machine.MACHINES[OLDEST], "5.10.0-1-cloud-amd64")
    told = re.escape('verifier_cost.json has no numbers of clang 1: add to them, for %s, "5.10": '
                     '{"sample": 41214}' % kernel.machine.architecture.__name__)
    with pytest.raises(AssertionError, match=told):
        check_cost(kernel, "clang 1", "verifier: sample 41214\n", measured=None)
