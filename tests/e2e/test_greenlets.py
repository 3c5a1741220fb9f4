# SPDX-License-Identifier: BSD-2-Clause
"""Greenlets switch C stacks and Python stacks.  Each sample shows the whole stack of one greenlet."""

import collections
import re
import shutil
import subprocess

import pytest

from legal import BRIEF, check_whole, runs_until
from native_chains import check_native_ledger
from packages import has_module, install
from pythons import RELEASE, own_and_fetched_pythons, own_pythons

DEPTH = 5
OURS = re.compile(r"(root|descend|lambda|bottom|spin)_(\d)_(\d)")
GREENLETS = 8

# greenlet needs the C++ library.  Fetched interpreters come without it.
CPP_LIBRARY = "libstdc++.so.6"


def greenlet_pythons():
    """This machine's own Pythons, and fetched ones of the other versions."""
    own = own_pythons()
    there = {python.version[:2] for python in own}
    return own + [python for python in own_and_fetched_pythons()
                  if python.kind == RELEASE and python.version[:2] not in there]


def add_cpp_library(folder):
    path = subprocess.check_output(["gcc", "-print-file-name=" + CPP_LIBRARY], universal_newlines=True)
    shutil.copy(path.strip(), folder)


@pytest.fixture
def gevent_folder(python, tmp_path):
    """A folder with gevent and greenlet for this Python, kept for the next run; "" if it has Debian's
    gevent."""
    if has_module(python.command, "gevent"):
        return ""
    return install(python, "gevent", ["gevent"], str(tmp_path / "new"),
                   finish=add_cpp_library if python.root else lambda folder: None)


def expected(number):
    """The functions from the root to the deepest call of greenlet NUMBER."""
    names = ["root"]
    for depth in range(DEPTH + number, 0, -1):
        names += ["descend"] if depth % 2 else ["descend", "lambda"]
    return names + ["descend", "bottom", "spin"]


def why_not(frames):
    """The problem of a whole stack, root first; None for a legal one."""
    seen = [match.groups() for match in (OURS.fullmatch(frame.name) for frame in frames) if match]
    if len({(thread, number) for _, thread, number in seen}) > 1:
        return "several greenlets"
    if seen:
        names = [name for name, _, _ in seen]
        if names != expected(int(seen[0][2]))[:len(names)]:
            return "not its calls: " + " ".join(names)
    return None


# While 3.12 switches greenlets, its frame list lacks the entry frames from C.  Only they prove that a C
# frame of that version is the current one (bpf/activation.bpf.h), so samples at that moment have a reason
# instead of a stack.  Their share depends on how often the program switches: here, 1 to 2 %.
LOST_IN_3_12 = 0.05


@pytest.mark.proves("greenlets")
@pytest.mark.pythons(which=greenlet_pythons)
@pytest.mark.parametrize("switcher, cpu", [
    ("greenlet", BRIEF), *(pytest.param(switcher, 2, marks=pytest.mark.prove("truth"))
                           for switcher in ("greenlet", "gevent"))])
def test_each_stack_is_of_one_greenlet(python, switcher, cpu, gevent_folder, target, profile, measured):
    program = target(python, "greenlets.py", switcher, environment={
        "PYTHONPATH": gevent_folder, "LD_LIBRARY_PATH": gevent_folder})
    greenlets = set()

    def all_are_seen(runs):
        for frames, _ in runs[-1].stacks:
            if any(frame.file is None for frame in frames):
                continue  # a reason, counted among the errors
            assert why_not(frames) is None, (why_not(frames), frames)
            greenlets.update(match.groups()[1:] for match in
                             (OURS.fullmatch(frame.name) for frame in frames) if match)
        return len(greenlets) >= GREENLETS

    runs = runs_until(profile, all_are_seen, "-p", program.pid, "-r", 2999, cpu=cpu)
    assert len(greenlets) == GREENLETS
    if cpu > BRIEF:
        samples, errors = sum(run.samples for run in runs), collections.Counter()
        for run in runs:
            errors.update(run.ledger["errors"])
        if python.version[:2] == (3, 12):
            assert errors.pop("frame_entering") <= LOST_IN_3_12 * samples
        check_whole(measured, "%s, %s" % (switcher, python.name), samples - sum(errors.values()), samples)


BASE = "g_initialstub"  # in greenlet 2 and later of greenlet::UserGreenlet


@pytest.mark.pythons(which=greenlet_pythons)
def test_native_frames_are_of_one_greenlet(python, gevent_folder, target, profile):
    """Beyond the base of a greenlet's C stack lies the stack of another one, or its remains: the walk stops."""
    program = target(python, "greenlets.py", "greenlet", environment={
        "PYTHONPATH": gevent_folder, "LD_LIBRARY_PATH": gevent_folder})
    based = set()

    def all_are_seen(runs):
        for frames, _ in runs[-1].stacks:
            if any(frame.label.startswith("[") for frame in frames):
                continue  # a reason, or C frames are lost
            assert why_not(frames) is None, (why_not(frames), frames)
            matches = list(filter(None, (OURS.fullmatch(frame.name) for frame in frames)))
            if matches and not OURS.fullmatch(frames[0].name):
                assert frames[0].name.rpartition("::")[2] == BASE, frames
                based.add(matches[0].groups()[1:])
        return len(based) >= GREENLETS

    runs = runs_until(profile, all_are_seen, "-p", program.pid, "-n", "-r", 1999, cpu=BRIEF)
    assert len(based) == GREENLETS
    for run in runs:
        check_native_ledger(run.ledger)


# A function that only a new greenlet runs.
BEGUN = "greenlet::UserGreenlet::inner_bootstrap"
STARTING = "greenlet_starting"


@pytest.mark.pythons(which=greenlet_pythons, since=(3, 10))
@pytest.mark.parametrize("starter", ["greenlet", "gevent", "thread"])
def test_a_starting_greenlet_is_counted_as_such(python, starter, gevent_folder, target, profile):
    """Samples of a starting greenlet count as greenlet_starting, those of a starting thread as no_python."""
    program = target(python, "greenlet_starts.py", starter, environment={
        "PYTHONPATH": gevent_folder, "LD_LIBRARY_PATH": gevent_folder})

    def is_seen(runs):
        ledger = runs[-1].ledger
        return ledger["no_python"] if starter == "thread" else ledger["errors"][STARTING]

    for run in runs_until(profile, is_seen, "-p", program.pid, "-r", 1999, cpu=BRIEF):
        if starter == "thread":
            assert run.ledger["errors"][STARTING] == 0
        else:
            assert run.ledger["no_python"] == 0
            assert run.ledger["errors"][STARTING] == run.count_name("[a greenlet is starting]")


@pytest.mark.pythons(which=lambda: [python for python in greenlet_pythons() if python.version[:2] == (3, 11)])
def test_the_caller_of_a_starting_greenlet(python, gevent_folder, target, profile):
    """3.11: with native frames, the C stack leads to the Python frames that started the greenlet."""
    program = target(python, "greenlet_starts.py", "greenlet", environment={
        "PYTHONPATH": gevent_folder, "LD_LIBRARY_PATH": gevent_folder})

    def is_seen(runs):
        found = False
        for frames, _ in runs[-1].stacks:
            names = [frame.name for frame in frames]
            if names[0] == "<module>" and BEGUN in names:
                assert names[:3] == ["<module>", "main", "start_greenlet"], frames
                assert "piece" not in names, frames
                found = True
        return found

    for run in runs_until(profile, is_seen, "-p", program.pid, "-n", "-r", 1999, cpu=BRIEF):
        check_native_ledger(run.ledger)
