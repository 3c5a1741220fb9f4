# SPDX-License-Identifier: BSD-2-Clause
"""The oldest kernel that is supported and Debian's newest, each in an emulated machine: the BPF program loads,
and a profile of two Pythons has only possible stacks.  test_all_kernels.py tests all kernels, and more there.

Only facts are asserted.  The machine's clock counts emulated instructions, so the load on this one changes nothing.
"""

import pytest

from conftest import check_ledger, parse_folded
from machines import (
    OUTPUTS, PROFILER, build_image, describe, describe_job, fetching, image, kernels, machine,  # noqa: F401
    stacks_of, why_not_legal)
from test_kernel_frames import check_order

pytestmark = pytest.mark.timeout(1800)

MACHINES = machine.FEW_MACHINES
SECONDS, RATE = "1", "999"
READS = "syscalls:sys_exit_read:ret"


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
        waits = describe_job([PROFILER, *OUTPUTS, "--off-cpu", "-k", "-d", SECONDS],
                             [describe(image.guest_command(contents.pythons()[0]) + ["-S", "/programs/waits.py"], 0)])
        blame = describe_job([PROFILER, *OUTPUTS, "--gil-blame", "-d", SECONDS, "-r", RATE],
                             [describe(image.guest_command(contents.pythons()[-1]) +
                                       ["-S", "/programs/gil.py", "keep_here", "sleep_here"], 0)])
        calls = describe_job([PROFILER, *OUTPUTS, "-d", SECONDS, "--show", READS, "-e", READS,
                              "-e", "sched:sched_waking", "-e", "net:net_dev_queue:len", "-e", "cpu-clock"],
                             [reader])
        python = contents.pythons()[0]
        probed = "uprobe:%s:PyEval_SaveThread" % python.path
        probes = describe_job([PROFILER, *OUTPUTS, "-d", SECONDS, "-e", probed], [reader])
        return build_image(str(tmp_path_factory.mktemp("image")), binary, contents,
                           {"profile": profile, "kernel frames": below, "native frames": native,
                            "waits": waits, "blame": blame, "calls": calls, "probes": probes})
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


def test_no_stack_that_never_was(kernel):
    result = kernel.succeeded("profile")
    assert kernel.pythons
    for python, part in zip(kernel.pythons, result["programs"]):
        wrong, whole, lacking = why_not_legal(stacks_of(result, part), python)
        assert wrong == {}, python.name
        assert whole, (python.name, lacking, result["output"])


def test_kernel_frames(kernel):
    """The program loads with them, and they are below what called them."""
    stacks = parse_folded(kernel.succeeded("kernel frames")["profile"])
    check_order(stacks)
    assert any(frame.name == "vfs_read_[k]" for frames, _ in stacks for frame in frames)
    check_ledger(kernel.ledger("kernel frames"))


def test_native_frames(kernel):
    """The program loads with them, and they stand among Python's."""
    stacks = parse_folded(kernel.succeeded("native frames")["profile"])
    names = {frame.name for frames, _ in stacks for frame in frames}
    assert any(".so" in name or "+0x" in name or "(python" in name for name in names), names
    ledger = kernel.ledger("native frames")
    check_ledger(ledger)
    assert sum(ledger["native"].values()) == ledger["events"]
    assert ledger["native"]["whole"]


def test_native_frames_where_the_kernel_was_interrupted(kernel):
    """The user code's registers are known there: the C function that called the kernel is between."""
    result = kernel.succeeded("native frames")
    stacks = [[frame.name for frame in frames] for frames, _ in stacks_of(result, result["programs"][1])]
    assert any("read_all" in names and "vfs_read_[k]" in names and
               "read" in names[names.index("read_all"):names.index("vfs_read_[k]")] for names in stacks)
    assert kernel.ledger("native frames")["native"]["no_registers"] == 0


def test_waits(kernel):
    """The program loads that measures them, and each has its place and its reason."""
    stacks = [([frame.name for frame in frames], value)
              for frames, value in parse_folded(kernel.succeeded("waits")["profile"])]
    for function, reason in ("sleep_here", "[sleep]"), ("read_here", "[read]"), ("lock_here", "[lock]"):
        found = [names for names, value in stacks if function in names and value and
                 names[-1] in {reason, "[poll]" if reason == "[sleep]" else reason}]
        assert found, (function, stacks)
        assert all(any(name.endswith("_[k]") for name in names) for names in found), found
        # Those that waited already are without the scheduler's own.
        assert any("schedule" in name for names in found for name in names), found
        assert not any("bpf_" in name for names in found for name in names), found
    event = kernel.ledger("waits")["per_event"]["off-cpu"]
    assert event["events"] == event["samples"] + event["lost"]
    assert sum(value for _, value in stacks) == event["value"]


def test_who_keeps_the_gil(kernel):
    """The program loads that counts who waits for it."""
    stacks = parse_folded(kernel.succeeded("blame")["profile"])
    event = kernel.ledger("blame")["per_event"]["gil-blame"]
    assert any(frame.name == "keep_here" for frames, _ in stacks for frame in frames)
    assert event["events"] == event["samples"] + event["without_gil"] + event["lost"]
    assert sum(value for _, value in stacks) == event["value"]


def test_calls(kernel):
    """The programs for tracepoints load, and find what these are called with."""
    stacks = parse_folded(kernel.succeeded("calls")["profile"])
    assert any(frames[-1].name == "read_all" and value for frames, value in stacks), stacks
    events = kernel.ledger("calls")["per_event"]
    assert events[READS]["value"] == sum(value for _, value in stacks)
    for event in events.values():
        assert event["events"] == event["samples"] + event["lost"]


def test_probes(kernel):
    """The program for them loads, and the kernel runs it where a function begins."""
    stacks = parse_folded(kernel.succeeded("probes")["profile"])
    (event,) = kernel.ledger("probes")["per_event"].values()
    assert event["events"] == event["samples"] + event["lost"] and event["samples"]
    assert {frames[-1].name for frames, _ in stacks} == {"read_all"}


def test_ledger(kernel):
    ledger = kernel.ledger()
    check_ledger(ledger)
    counted = sum(count for _, count in parse_folded(kernel.succeeded("profile")["profile"]))
    assert counted == ledger["samples"]
