# SPDX-License-Identifier: BSD-2-Clause
"""The default kinds of frames: a page has all that are possible."""

import json
import os
import re

import pytest

from conftest import CAPABILITIES, as_nobody, wait_for
from legal import BRIEF
from native_chains import CHAIN, chain_command, chain_library, chains  # noqa: F401

PYTHON, NATIVE, KERNEL, REASON, INTERPRETER = 1, 2, 3, 5, 6  # the page's kinds of functions
READ_BY_C, READ_BY_KERNEL = "chain_read (%s)" % CHAIN, "vfs_read_[k]"
BOTH = {(READ_BY_C, NATIVE), (READ_BY_KERNEL, KERNEL)}
SPIN = "chain_spin (%s)" % CHAIN, NATIVE
NOT_ALLOWED = 4
NO_ROOM = "native frames are left out: not enough memory"
HIDDEN = "the kernel hides its symbols: its frames are left out"


def functions_of(page):
    """{(name, kind)} of a page's functions.  Checks that its samples match its ledger."""
    saved = json.loads(re.search(r'id="profile">(.*?)</script>', page, re.DOTALL)[1])
    assert sum(saved["samples"][2::3]) == saved["ledger"]["samples"]
    rows = zip(saved["functions"][0::5], saved["functions"][4::5])
    return {(saved["strings"][name], kind) for name, kind in rows}


def kinds_of(page):
    return {kind for _, kind in functions_of(page)}


@pytest.fixture
def pages(profile):
    """pages(CONDITION, ARGUMENT...): runs the profiler until CONDITION(page) holds.  Returns [(page, messages)]
    of all runs."""
    def run(condition, *arguments, **options):
        done = []

        def run_once_more():
            run = profile.attempt(*arguments, "-r", 999, "-o", "-", **options)
            assert run.status == 0, run.stderr
            done.append((run.stdout.decode("utf-8"), run.stderr))
            return condition(done[-1][0])
        wait_for(run_once_more)
        return done
    return run


@pytest.fixture
def reading(any_python, chains):
    return chains(any_python, "reading").pid


def has_both(page):
    return BOTH <= functions_of(page)


def has_native(page):
    return (READ_BY_C, NATIVE) in functions_of(page)


def has_python(page):
    return ("read", PYTHON) in functions_of(page)


def test_of_a_process(reading, pages):
    for _, said in pages(has_both, "-p", reading, cpu=BRIEF):
        # The summary on the terminal has only Python frames, as no others were requested.
        assert "read (native_chain.py" in said and "chain_read" not in said and "[k]" not in said


def test_of_all_processes(reading, pages):
    pages(has_both, "-a", cpu=BRIEF, of=[reading])


def test_of_a_program(any_python, chain_command, pages):
    pages(has_both, command=[any_python.path, *chain_command("reading", "end")])


def test_requested_frames_are_on_the_terminal(any_python, chains, pages):
    for page, said in pages(lambda page: SPIN in functions_of(page), "-p", chains(any_python, "mixed").pid, "-n",
                            cpu=BRIEF):
        assert SPIN not in functions_of(page) or SPIN[0] in said
        assert "[k]" not in said


@pytest.mark.parametrize("options, kinds", [([], set()), (["-k"], {KERNEL})], ids=["alone", "beside -k"])
def test_no_native(options, kinds, reading, pages):
    done = pages(lambda page: has_python(page) and kinds <= kinds_of(page),
                 "-p", reading, "--no-native", *options, cpu=BRIEF)
    for page, _ in done:
        assert kinds_of(page) <= {PYTHON, REASON} | kinds


@pytest.mark.parametrize("suffix", ["folded", "pb.gz", "speedscope.json", "text"])
def test_other_formats(suffix, reading, profile, tmp_path):
    path = tmp_path / ("profile." + suffix)
    run = profile.attempt("-p", reading, "-r", 999, "-o", path, "--stats", tmp_path / "stats.json", cpu=BRIEF)
    assert run.status == 0, run.stderr
    ledger = json.loads((tmp_path / "stats.json").read_text(encoding="utf-8"))
    assert ledger["samples"] and not any(ledger["native"].values())


@pytest.fixture
def without_room(binary):
    """The environment of a profiler for which the kernel refuses memory for native frames."""
    return dict(os.environ, LD_PRELOAD=os.path.join(os.path.dirname(binary), "refuse_bpf.so"))


def test_no_room_for_native_frames(reading, pages, without_room):
    def has_kernel(page):
        return has_python(page) and (READ_BY_KERNEL, KERNEL) in functions_of(page)

    for page, said in pages(has_kernel, "-p", reading, cpu=BRIEF, env=without_room):
        assert kinds_of(page) <= {PYTHON, KERNEL, REASON} and said.count(NO_ROOM) == 1


def test_no_room_for_requested_native_frames(reading, profile, without_room):
    run = profile.attempt("-p", reading, "-n", "-o", os.devnull, "-f", "html", env=without_room)
    assert run.status == NOT_ALLOWED
    line, = run.stderr.splitlines()
    assert "not enough memory" in line and "ulimit" in line


def test_five_capabilities_suffice(reading, pages, profile, public_binary):
    """They suffice for everything but kernel symbols, which may be hidden."""
    profile.binary = public_binary
    for page, said in pages(has_native, "-p", reading, cpu=BRIEF, prefix=as_nobody(CAPABILITIES)):
        assert KERNEL not in kinds_of(page) or HIDDEN not in said
        assert "left out" not in said.replace(HIDDEN, "")


def test_hidden_kernel_symbols(reading, pages, hiding_symbols):
    for page, said in pages(has_native, "-p", reading, cpu=BRIEF, prefix=hiding_symbols):
        assert KERNEL not in kinds_of(page)
        line, = (line for line in said.splitlines() if HIDDEN in line)
        assert "CAP_SYSLOG" in line
