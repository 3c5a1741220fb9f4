# SPDX-License-Identifier: BSD-2-Clause
"""The tests' machines (test_kernels.py): what becomes of a kernel that cannot be had, of a job that does
not end, and of a compiler of which nothing is known."""

import collections
import os
import re
import subprocess

import pytest

from conftest import ROOT, missing
from machine_jobs import OLDEST, what_is_missing
from test_interpreters import FAKE_APT_GET
from test_kernels import check_cost

import guest  # its folder is in the path by now: machine_jobs.py
import machine

Kernel = collections.namedtuple("Kernel", "machine release")


@pytest.mark.parametrize("word, said", [
    ("update", "SKIPPED {}: kernel {} cannot be fetched: E: the reason"),
    ("download", "FAILED {}: failed on setup with \"Failed: this machine can provide kernel {} "
                 "(E: the reason), but it is missing\""),
], ids=["unreachable", "failed"])
def test_kernel_that_cannot_be_had_is_named_and_counted(tmp_path, binary, word, said):
    """In CI, too, it is a skip where the mirror cannot be reached, and that alone is one."""
    kernel = OLDEST
    lacking = what_is_missing(machine.MACHINES[kernel], binary)
    if lacking:
        missing(lacking)
    apt_get = tmp_path / "apt-get"
    apt_get.write_text(FAKE_APT_GET % word)
    apt_get.chmod(0o755)
    ended = subprocess.run([os.path.join(ROOT, "tests", "run"),
                            "tests/e2e/test_kernels.py::test_ledger[%s]" % kernel],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                           env=dict(os.environ, CI="true", PYBPFPROF_TEST_CACHE=str(tmp_path / "cache"),
                                    PATH="%s:%s" % (tmp_path, os.environ["PATH"])))
    *_, told, last = ended.stdout.splitlines()
    assert told == said.format("tests.e2e.test_kernels::test_ledger[%s]" % kernel, kernel), ended.stdout
    is_failed = said.startswith("FAILED")
    assert last == "0 passed, %d failed, %d skipped" % (is_failed, not is_failed)
    assert ended.returncode == 1


def test_job_that_does_not_end_tells_what_was_said(monkeypatch):
    monkeypatch.setattr(guest, "PATIENCE_S", 1)
    job = {"command": ["sh", "-c", "echo why not; exec sleep 60"], "capabilities": None, "environment": {}}
    assert guest.run_profiler(job, []) == (None, "why not\nnot over after 1 s")


def test_compiler_of_which_nothing_is_known():
    """That is no success, nor a skip; what it takes is told."""
    kernel = Kernel(machine.MACHINES[OLDEST], "5.10.0-1-cloud-amd64")
    told = re.escape('verifier_cost.json has no numbers of clang 1: add to them, for %s, "5.10": '
                     '{"sample": 41214}' % kernel.machine.architecture.__name__)
    with pytest.raises(AssertionError, match=told):
        check_cost(kernel, "clang 1", "verifier: sample 41214\n")
