# SPDX-License-Identifier: BSD-2-Clause
"""Events other than the clock: what they count, and that every format supports them."""

import json
import os
import re
import subprocess

import pytest

from answering import ask, record_while_asked
from folded import parse_folded, stacks
from touching import LINE, PAGES, toucher  # noqa: F401 (a fixture)


@pytest.fixture
def record(profile, toucher, tmp_path):  # noqa: F811
    """record(TIMES, FORMAT, ARGUMENT...): profiles while pages are touched TIMES times.  Returns the profile's path
    and the ledger."""
    def run(times, format_name, *arguments):
        return record_while_asked(profile, tmp_path, toucher, times, format_name, *arguments)[:2]
    return run


def test_each_fault_is_on_its_line(record):
    path, ledger = record(3, "folded", "-e", "page-faults:1")
    faults = sum(count for frames, count in stacks(path) if frames[-1].line == LINE)
    event = ledger["per_event"]["page-faults"]
    assert faults + event["left_out"] >= 3 * PAGES
    # Other lines touch hardly any new page.
    assert event["samples"] - faults < PAGES
    assert event["unit"] == "count" and event["period"] == 1
    assert event["events"] == event["samples"] + event["lost"]
    assert event["value"] == event["samples"] >= faults
    assert ledger["events"] == event["events"] and ledger["rate_hz"] == 0


def test_a_sample_stands_for_its_period(record):
    path, ledger = record(3, "folded", "-e", "minor-faults:10")
    event = ledger["per_event"]["minor-faults"]
    assert event["period"] == 10 and event["value"] == 10 * event["samples"] > 0
    assert sum(count for _, count in stacks(path)) == event["value"]


BOTH = ("-e", "cpu-clock", "-e", "page-faults:1", "-r", "999")


def test_each_events_ledger_adds_up(record):
    _, ledger = record(100, "folded", *BOTH, "--show", "page-faults")
    clock, faults = (ledger["per_event"][name] for name in ("cpu-clock", "page-faults"))
    for event in clock, faults:
        assert event["events"] == event["samples"] + event["lost"]
        assert event["samples"] == event["python"] + event["no_python"] + sum(event["errors"].values())
    # The ledger's own fields are the first event's.
    assert all(ledger[name] == clock[name] for name in ("events", "samples", "lost", "python", "errors"))
    assert clock["unit"] == "nanoseconds" and clock["value"] == clock["samples"] * clock["period"]
    assert faults["samples"] + faults["left_out"] >= 100 * PAGES


@pytest.mark.parametrize("show", ["cpu-clock", "page-faults"])
def test_show_chooses_one_event(record, show):
    path, ledger = record(100, "folded", *BOTH, "--show", show)
    assert sum(count for _, count in stacks(path)) == ledger["per_event"][show]["samples"] > 0


def test_pprof_has_both_events(record, require, tmp_path):
    path, ledger = record(100, "pprof", *BOTH)
    tool = [require("go"), "tool", "pprof", "-top", "-unit=minimum"]
    environment = dict(os.environ, PPROF_TMPDIR=str(tmp_path))
    for name in "page_faults", "page_faults_samples", "samples":
        event = ledger["per_event"]["cpu-clock" if name == "samples" else "page-faults"]
        text = subprocess.run([*tool, "-sample_index=" + name, path], env=environment, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode("utf-8")
        assert "Type: %s\n" % name in text
        assert re.search(r"Total samples = (\d+)", text).group(1) == str(event["samples"])


def test_speedscope_has_both_events(record):
    path, ledger = record(100, "speedscope", *BOTH)
    with open(path, encoding="utf-8") as file:
        profiles = json.load(file)["profiles"]
    found = {each["name"].split(":")[0]: each for each in profiles}
    assert set(found) == {"cpu-clock", "page-faults"}
    assert found["cpu-clock"]["unit"] == "seconds" and found["page-faults"]["unit"] == "none"
    assert sum(found["page-faults"]["weights"]) == ledger["per_event"]["page-faults"]["samples"]


@pytest.mark.parametrize("arguments, said", [
    (("-e", "page-fault"), "'page-fault' is no known event: pybpfprof events lists them"),
    (("-e", "page-faults@99"), "page-faults cannot be sampled at a rate: use page-faults:COUNT"),
    (("-e", "cycles:1000@99"), "use only one of :COUNT and @HZ"),
    (("-e", "cycles@99:1000"), "use only one of :COUNT and @HZ"),
    (("-e", "cycles:u"), "modifiers such as :u are not supported"),
    (("-e", "page-faults:0"), "'0' is no count of page-faults"),
    (("-e", "page-faults:1x"), "'1x' is no count of page-faults"),
    (("-e", "cpu-clock:5"), "cpu-clock has no count: it is sampled at the rate of -r"),
    (("-e", "cpu/event=0x3c"), "'cpu/event=0x3c' needs a / at its end"),
    (("-e", "r1a8", "-e", "r1a8:5"), "-e names r1a8 twice"),
    (("-e", "migrations", "-e", "migrations:2"), "-e names migrations twice"),
    (("-e", "faults", "-e", "page-faults"), "-e names page-faults twice"),
    (("-e", "cpu-clock", "-e", "page-faults", "-f", "folded"),
     "folded shows one event: choose it with --show EVENT, or use -f html or pprof or speedscope"),
    (("--show", "page-faults"), "--show page-faults is not sampled: add -e page-faults"),
    (("-c", "0", "-e", "page-faults"), "count '0' is not a number of events from 1 to 10^12"),
    (("-c", "5"), "--count is for events of -e that are counted, such as page-faults or cycles"),
    (("-r", "99", "-e", "cpu-clock@499"), "all clocks have one rate"),
], ids=["unknown", "rate", "both", "both-turned", "modifier", "zero", "garbage", "clock", "raw", "raw-twice", "twice", "alias",
        "one-event", "not-sampled", "count-zero", "count-of-clock", "two-rates"])
def test_bad_events_are_refused(profile, arguments, said):
    run = profile.attempt("-p", os.getpid(), *arguments)
    assert run.status == 2 and said in run.stderr


def listed(profile):
    """{event: why it cannot be sampled here, or ""}"""
    run = profile.attempt("events")
    assert run.status == 0, run.stderr
    lines = run.stdout.decode("utf-8").splitlines()
    assert lines[0].split()[:2] == ["EVENT", "UNIT"]
    end = lines.index("")
    assert "tracepoints, of syscalls, " in " ".join(lines[end:])
    return {line.split()[0]: line.partition("not here: ")[2] for line in lines[1:end]}


def test_events_are_listed(profile):
    events = listed(profile)
    assert {"cpu-clock", "page-faults", "context-switches", "cycles", "LLC-load-misses", "off-cpu"} <= set(events)
    assert not any(events[name] for name in ("cpu-clock", "page-faults", "off-cpu"))


def test_task_clock_is_sampled(record):
    path, ledger = record(100, "folded", "-e", "task-clock:1000000")
    event = ledger["per_event"]["task-clock"]
    assert event["unit"] == "nanoseconds" and event["value"] == 1000000 * event["samples"] > 0
    assert sum(count for _, count in stacks(path)) == event["value"]


def test_a_count_is_for_events_without_their_own(record):
    _, ledger = record(100, "speedscope", "-c", "3", "-e", "page-faults", "-e", "minor-faults:7")
    for name, count in ("page-faults", 3), ("minor-faults", 7):
        event = ledger["per_event"][name]
        assert event["period"] == count and event["value"] == count * event["samples"] > 0


def test_the_clock_takes_a_rate(record):
    _, ledger = record(100, "folded", "-e", "cpu-clock@250")
    assert ledger["rate_hz"] == 250 and ledger["per_event"]["cpu-clock"]["period"] == 4000000


def test_task_clock_takes_the_common_rate(record):
    _, ledger = record(100, "folded", "-e", "task-clock", "-r", "500")
    event = ledger["per_event"]["task-clock"]
    assert event["value"] == 2000000 * event["samples"] > 0


# The latter two are raw encodings of cycles.
@pytest.mark.parametrize("counter", ["instructions", "r3c:100000", "cpu/event=0x3c/:100000"])
def test_a_counter_is_sampled_or_refused(profile, toucher, counter):  # noqa: F811
    """The result matches the list of `events` on this machine."""
    missing = listed(profile)["instructions"]
    run = profile.start("-p", toucher.pid, "-e", counter, "-f", "folded", "-o", "-", files=False)
    if missing:
        run.finish()
        assert run.status == 4
        name = counter.partition(":")[0]
        opens = [name for name, reason in listed(profile).items() if not reason]
        opens = ", ".join(name for name in opens if name not in ("cpu-clock", "gil-blame", "off-cpu"))
        assert "this machine cannot count %s; it can count %s: choose one" % (name, opens) in run.stderr
    else:
        run.wait_sampling()
        ask(toucher, 100)
        assert run.interrupt().finish().status == 0
        assert any(frame.name == "spin" for frames, _ in parse_folded(run.stdout.decode("utf-8")) for frame in frames)
