# SPDX-License-Identifier: BSD-2-Clause
"""The oldest kernel that is supported and Debian's newest, each in a machine of its own: the BPF program loads,
and a profile of two Pythons is true.  All kernels, and all that is done there, are in test_all_kernels.py."""

import pytest

from conftest import check_ledger, parse_folded
from machines import (
    OUTPUTS, PROFILER, build_image, describe, describe_job, kernels, machine, result_of, stacks_of,  # noqa: F401
    why_not_legal)

import image

pytestmark = pytest.mark.timeout(1800)

MACHINES = machine.FEW_MACHINES
# Of a clock that counts the emulated instructions: how busy this machine is changes nothing.
SECONDS, RATE = "1", "999"


@pytest.fixture(scope="module")
def initrd(binary, tmp_path_factory):
    def make(contents):
        programs = [describe(image.guest_command(python) + ["-S", "/programs/deep.py"], 0)
                    for python in contents.pythons()]
        profile = describe_job([PROFILER, *OUTPUTS, "-d", SECONDS, "-r", RATE], programs)
        return build_image(str(tmp_path_factory.mktemp("image")), binary, contents, {"profile": profile})
    return make


@pytest.fixture(scope="module", params=MACHINES)
def kernel(request, kernels):  # noqa: F811
    return result_of(request.param, kernels[request.param])


def test_a_kernel_is_there(kernels):  # noqa: F811
    """Each that cannot be had is skipped; a run without any shows nothing."""
    reasons = {name: future.exception() for name, future in kernels.items()}
    assert None in reasons.values(), reasons


def test_program_loads(kernel, request):
    request.node.user_properties.append(("machine", kernel.time))  # for tests/run
    kernel.succeeded("profile")


def test_no_stack_that_never_was(kernel):
    result = kernel.succeeded("profile")
    assert kernel.pythons
    for python, part in zip(kernel.pythons, result["programs"]):
        wrong, whole, lacking = why_not_legal(stacks_of(result, part), python)
        assert wrong == {}, python.name
        assert whole, (python.name, lacking, result["output"])


def test_ledger(kernel):
    ledger = kernel.ledger()
    check_ledger(ledger)
    counted = sum(count for _, count in parse_folded(kernel.succeeded("profile")["profile"]))
    assert counted == ledger["samples"]
