# SPDX-License-Identifier: BSD-2-Clause
"""Kernel frames, below the frames that called the kernel."""

import gzip

import pytest

from agents import end, named, own
from conftest import CAPABILITIES, as_nobody, wait_for
from folded import parse_folded
from legal import BRIEF
from pythons import few_of, own_pythons

HIDDEN = "the kernel hides its symbols"


@pytest.fixture
def reader(target):
    """reader(PYTHON): a process that has the kernel read a file."""
    return lambda python, **options: target(python, "reads.py", **options)


def is_kernel(frame):
    return frame.label.endswith("_[k]") or frame.label == "[kernel]"


def check_order(stacks):
    """Kernel frames are at the leaf end of each stack, and nowhere else."""
    for frames, _ in stacks:
        kinds = [is_kernel(frame) for frame in frames]
        assert kinds == sorted(kinds), frames


@pytest.mark.parametrize("python", few_of(own_pythons()), ids=lambda python: python.name)
def test_kernel_frames_are_below_their_caller(python, reader, profile):
    pid = reader(python).pid
    run = profile("-p", pid, "-k", "-r", 999, cpu=BRIEF)
    check_order(run.stacks)
    assert run.count_name("vfs_read_[k]") > 0
    for frames, _ in run.stacks:
        names = [frame.name for frame in frames]
        if "vfs_read_[k]" in names:
            assert names.index("read_all") < names.index("vfs_read_[k]")
    # Without -k, the time belongs to the Python line.
    run = profile("-p", pid, "-r", 999, cpu=BRIEF)
    assert not run.count(is_kernel) and run.count_name("read_all") > 0


def test_hidden_names(any_python, reader, profile, hiding_symbols):
    run = profile("-p", reader(any_python).pid, "-k", "-r", 999, cpu=BRIEF, prefix=hiding_symbols)
    assert HIDDEN in run.stderr and "CAP_SYSLOG" in run.stderr
    check_order(run.stacks)
    assert run.count_name("[kernel]") > 0
    assert not run.count(lambda frame: frame.label.endswith("_[k]"))
    # Without names, one frame stands for all of them.
    assert all(sum(map(is_kernel, frames)) <= 1 for frames, _ in run.stacks)


def test_five_capabilities_suffice(any_python, reader, profile, public_binary):
    """Except for the names, if the kernel hides them."""
    profile.binary = public_binary
    run = profile.start("-p", reader(any_python).pid, "-k", "-r", 999, "-f", "folded", "-o", "-", files=False,
                        cpu=BRIEF, prefix=as_nobody(CAPABILITIES)).finish()
    assert run.status == 0, run.stderr
    stacks = parse_folded(run.stdout.decode("utf-8"))
    check_order(stacks)
    names = {frame.label for frames, _ in stacks for frame in frames if is_kernel(frame)}
    assert names
    assert (names == {"[kernel]"}) == (HIDDEN in run.stderr)


@pytest.mark.parametrize("suffix", ["html", "pb.gz", "speedscope.json"])
def test_each_format(suffix, any_python, reader, profile, tmp_path):
    output = tmp_path / ("profile." + suffix)
    run = profile.start("-p", reader(any_python).pid, "-k", "-r", 999, "-o", output, cpu=BRIEF, files=False).finish()
    assert run.status == 0, run.stderr
    content = output.read_bytes()
    if suffix == "pb.gz":
        content = gzip.decompress(content)
    assert b"vfs_read_[k]" in content


def test_agent(any_python, reader, agent, report, store):
    reader(any_python, environment=named("web"))
    run = agent("--window", "0.5s", "-r", 999, "--kernel", "--listen", "off")
    wait_for(lambda: len(store.windows()) >= 3)
    end(run)
    assert run.status == 0, run.stderr
    store.check()
    frames = [frames for service, frames, _ in report() if service == own("web")]
    assert any("vfs_read_[k]" in row and row.index("vfs_read_[k]") > 1 for row in frames)
