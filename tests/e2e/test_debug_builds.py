# SPDX-License-Identifier: BSD-2-Clause
"""Debian's debug builds: up to 3.7 each object begins with two pointers more.

`make test-all` has them go through all that the others do.
"""

import pytest

from legal import DeepLegal
from pythons import debug_pythons

SAMPLES_WANTED = 5000
RUNS_AT_MOST = 20  # of 1 s: one or two are enough unless others keep the CPUs busy


@pytest.mark.proves("impossible stacks")
@pytest.mark.pythons(which=debug_pythons)
def test_every_stack_and_line_can_be(python, target, profile):
    legal = DeepLegal(python, roots=("<module>", "work"))
    program = target(python, "deep.py")
    wrong = {}
    samples = whole = 0
    for _ in range(RUNS_AT_MOST):
        run = profile("-p", program.pid, "-d", 1, "-r", 9999)
        samples += run.samples
        for frames, count in run.stacks:
            if frames[-1].file is None:
                continue
            whole += count
            reason = legal.why_not(frames)
            if reason:
                wrong[reason] = wrong.get(reason, 0) + count
        if samples >= SAMPLES_WANTED:
            break
    assert wrong == {}
    assert whole >= 0.999 * samples
    assert samples >= SAMPLES_WANTED
