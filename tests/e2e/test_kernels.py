# SPDX-License-Identifier: BSD-2-Clause
"""The oldest supported kernel and Debian's newest, each in an emulated machine: the BPF program loads, and a
profile of two Pythons has only possible stacks.  test_all_kernels.py tests all kernels, with more checks.

No time is asserted.  The guest's clock counts emulated instructions, so the load of the host changes nothing.
"""

import pytest

from conftest import check_ledger, parse_folded
from machine_events import make_event_jobs, test_calls, test_probes, test_waits, test_who_keeps_the_gil  # noqa: F401
from machines import (
    OUTPUTS, PROFILER, build_image, describe, describe_job, fetching, image, kernels, machine,  # noqa: F401
    stacks_of, why_not_legal)
from test_kernel_frames import check_order

pytestmark = pytest.mark.timeout(1800)

MACHINES = machine.FEW_MACHINES
SECONDS, RATE = "1", "999"


@pytest.fixture(scope="module")
def initrd(binary, tmp_path_factory):
    def make(contents):
        programs = [describe(image.guest_command(python) + ["-S", "/programs/deep.py"], 0)
                    for python in contents.pythons()]
        profile = describe_job([PROFILER, *OUTPUTS, "-d", SECONDS, "-r", RATE], programs)
        reader = describe(image.guest_command(contents.pythons()[0]) + ["-S", "/programs/reads.py"], 0)
        below = describe_job([PROFILER, *OUTPUTS, "-k", "-d", SECONDS, "-r", RATE], [reader])
        native = describe_job([PROFILER, *OUTPUTS, "-n", "-k", "-d", SECONDS, "-r", RATE],
                              [programs[0], reader])
        return build_image(str(tmp_path_factory.mktemp("image")), binary, contents,
                           {"profile": profile, "kernel frames": below, "native frames": native,
                            **make_event_jobs(contents)})
    return make


@pytest.fixture(scope="module", params=MACHINES)
def kernel(request, kernels):  # noqa: F811
    with fetching(request.param):
        return kernels[request.param].result()


def test_a_kernel_is_there(kernels):  # noqa: F811
    """A kernel that cannot be fetched is skipped.  At least one must run."""
    reasons = {name: future.exception() for name, future in kernels.items()}
    assert None in reasons.values(), reasons


def test_program_loads(kernel):
    kernel.succeeded("profile")


def test_no_impossible_stack(kernel):
    result = kernel.succeeded("profile")
    assert kernel.pythons
    for python, part in zip(kernel.pythons, result["programs"]):
        wrong, whole, lacking = why_not_legal(stacks_of(result, part), python)
        assert wrong == {}, python.name
        assert whole, (python.name, lacking, result["output"])


def test_kernel_frames(kernel):
    """The BPF program loads with them, and they are below their caller."""
    stacks = parse_folded(kernel.succeeded("kernel frames")["profile"])
    check_order(stacks)
    assert any(frame.name == "vfs_read_[k]" for frames, _ in stacks for frame in frames)
    check_ledger(kernel.ledger("kernel frames"))


def test_native_frames(kernel):
    """The BPF program loads with them, and the profile has them."""
    stacks = parse_folded(kernel.succeeded("native frames")["profile"])
    names = {frame.name for frames, _ in stacks for frame in frames}
    assert any(".so" in name or "+0x" in name or "(python" in name for name in names), names
    ledger = kernel.ledger("native frames")
    check_ledger(ledger)
    assert sum(ledger["native"].values()) == ledger["events"]
    assert ledger["native"]["whole"]


def test_native_frames_of_samples_in_the_kernel(kernel):
    """The user registers are known: the C function that called the kernel stands between Python and the kernel."""
    result = kernel.succeeded("native frames")
    stacks = [[frame.name for frame in frames] for frames, _ in stacks_of(result, result["programs"][1])]
    assert any("read_all" in names and "vfs_read_[k]" in names and
               "read" in names[names.index("read_all"):names.index("vfs_read_[k]")] for names in stacks)
    assert kernel.ledger("native frames")["native"]["no_registers"] == 0


def test_ledger(kernel):
    ledger = kernel.ledger()
    check_ledger(ledger)
    counted = sum(count for _, count in parse_folded(kernel.succeeded("profile")["profile"]))
    assert counted == ledger["samples"]
