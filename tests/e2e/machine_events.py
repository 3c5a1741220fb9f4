# SPDX-License-Identifier: BSD-2-Clause
"""Events other than the clock in emulated machines: the jobs, and the tests of their results, which
test_kernels.py and test_all_kernels.py import."""

from folded import parse_folded
from machines import OUTPUTS, PROFILER, describe, describe_job, image

SECONDS, RATE = "1", "999"
READS = "syscalls:sys_exit_read:ret"


def make_event_jobs(contents, environment=()):
    """{name: job}.  They must come before jobs that lock the machine down."""
    def describe_program(python, *command):
        return describe(image.guest_command(python) + ["-S", *command], 0)

    def describe_run(program, *arguments):
        return describe_job([PROFILER, *OUTPUTS, "-d", SECONDS, *arguments], [program], environment=environment)
    first, last = contents.pythons()[0], contents.pythons()[-1]
    reader = describe_program(first, "/programs/reads.py")
    return {"waits": describe_run(describe_program(first, "/programs/waits.py"), "--off-cpu", "-k"),
            "blame": describe_run(describe_program(last, "/programs/gil.py", "keep_here", "sleep_here"),
                                  "--gil-blame", "-r", RATE),
            "calls": describe_run(reader, "--show", READS, "-e", READS, "-e", "sched:sched_waking",
                                  "-e", "net:net_dev_queue:len", "-e", "cpu-clock"),
            "probes": describe_run(reader, "-e", "uprobe:%s:PyEval_SaveThread" % first.path)}


def test_waits(kernel):
    """The BPF program for --off-cpu loads.  Each wait has its Python function and its reason."""
    stacks = [([frame.name for frame in frames], value)
              for frames, value in parse_folded(kernel.succeeded("waits")["profile"])]
    for function, reason in ("sleep_here", "[sleep]"), ("read_here", "[read]"), ("lock_here", "[lock]"):
        found = [names for names, value in stacks if function in names and value and
                 names[-1] in {reason, "[poll]" if reason == "[sleep]" else reason}]
        assert found, (function, stacks)
        assert all(any(name.endswith("_[k]") for name in names) for names in found), found
        # The scheduler's frames are shown, BPF's are not.
        assert any("schedule" in name for names in found for name in names), found
        assert not any("bpf_" in name for names in found for name in names), found
    event = kernel.ledger("waits")["per_event"]["off-cpu"]
    assert event["events"] == event["samples"] + event["lost"]
    assert sum(value for _, value in stacks) == event["value"]


def test_who_keeps_the_gil(kernel):
    """The BPF program for --gil-blame loads, and blames the function that keeps the GIL."""
    stacks = parse_folded(kernel.succeeded("blame")["profile"])
    event = kernel.ledger("blame")["per_event"]["gil-blame"]
    assert any(frame.name == "keep_here" for frames, _ in stacks for frame in frames)
    assert event["events"] == event["samples"] + event["without_gil"] + event["lost"]
    assert sum(value for _, value in stacks) == event["value"]


def test_calls(kernel):
    """The BPF programs for tracepoints load and read the tracepoints' arguments."""
    stacks = parse_folded(kernel.succeeded("calls")["profile"])
    assert any(frames[-1].name == "read_all" and value for frames, value in stacks), stacks
    events = kernel.ledger("calls")["per_event"]
    assert events[READS]["value"] == sum(value for _, value in stacks)
    for event in events.values():
        assert event["events"] == event["samples"] + event["lost"]


def test_probes(kernel):
    """The BPF program for uprobes loads and runs at the start of the function."""
    stacks = parse_folded(kernel.succeeded("probes")["profile"])
    (event,) = kernel.ledger("probes")["per_event"].values()
    assert event["events"] == event["samples"] + event["lost"] and event["samples"]
    assert {frames[-1].name for frames, _ in stacks} == {"read_all"}
