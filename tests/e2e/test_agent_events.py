# SPDX-License-Identifier: BSD-2-Clause
"""The agent with a second event besides the clock: store, reports, pages, metrics and pushes keep them apart."""

import concurrent.futures
import os
import re
import subprocess

import pytest

from agents import end
from answering import ask
from conftest import wait_for
from test_agent_http import site  # noqa: F401 (a fixture)
from test_push import KINDS, backend  # noqa: F401 (a fixture)
from touching import LINE, PAGES, toucher  # noqa: F401 (a fixture)

BOTH = ("-e", "cpu-clock", "-e", "page-faults:1", "-r", "999", "--window", "0.5s")


@pytest.fixture
def faults(report):
    """faults(): the number of stored page faults on the line that touches pages."""
    def read():
        try:
            rows = report("--show", "page-faults")
        except AssertionError:
            return 0
        return sum(count for _, frames, count in rows if frames[-1].endswith("toucher.py:%d)" % LINE))
    return read


@pytest.fixture
def touched(site, toucher, faults):  # noqa: F811
    """touched(TIMES, ARGUMENT...): the Site of a running agent, after a process that it had identified touched
    PAGES pages TIMES times."""
    def run(times, *arguments):
        pages = site(*BOTH, *arguments)
        wait_for(lambda: (ask(toucher, 1), faults())[1])
        before = faults()
        ask(toucher, times)
        # Touch more pages while faults are missing.
        wait_for(lambda: faults() >= before + times * PAGES or ask(toucher, 1))
        return pages
    return run


def test_each_fault_is_stored_on_its_line(touched, store, report, faults):
    pages = touched(3)
    metrics = pages.metrics()
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr
    store.check()
    rows = store.select("SELECT event, sum(events), sum(samples), sum(lost), max(rate_hz) FROM windows"
                        " GROUP BY event ORDER BY event")
    assert [(row[0], row[4]) for row in rows] == [("cpu", 999), ("page-faults:1", 0)]
    assert all(events == samples + lost and samples > 0 for _, events, samples, lost, _ in rows)
    for event, row in ("cpu-clock", rows[0]), ("page-faults", rows[1]):
        assert sum(count for _, _, count in report("--show", event)) == row[2]
        assert 0 < metrics["pybpfprof_events_total"]['event="%s"' % event] <= row[1]
        samples = sum(value for labels, value in metrics["pybpfprof_samples_total"].items()
                      if 'event="%s"' % event in labels)
        assert samples + metrics["pybpfprof_samples_lost_total"]['event="%s"' % event] \
            == metrics["pybpfprof_events_total"]['event="%s"' % event]


def test_report_shows_one_or_both(touched, store, profile, require, tmp_path):
    pages = touched(1)
    end(pages.run)
    one = profile.attempt("report", "--store", store.folder, "-f", "folded", "-o", "-")
    assert one.status == 2 and "folded shows one event: choose it with --show EVENT" in one.stderr
    unknown = profile.attempt("report", "--store", store.folder, "-o", "-", "--show", "migrations")
    assert unknown.status == 2 and "use --show with one of cpu-clock, page-faults" in unknown.stderr
    compared = profile.attempt("report", "--store", store.folder, "-o", "-", "-f", "text", "--diff", "1h",
                               "--since", "1h")
    assert compared.status == 2 and "--diff compares one event" in compared.stderr
    path = str(tmp_path / "both.pb.gz")
    both = profile.attempt("report", "--store", store.folder, "-o", path)
    assert both.status == 0, both.stderr
    check_pprof(require, tmp_path, path, store)


def check_pprof(require, tmp_path, path, store):
    counted = dict(store.select("SELECT event, sum(samples) FROM windows GROUP BY event"))
    for index, event in ("samples", "cpu"), ("page_faults", "page-faults:1"):
        text = subprocess.check_output(
            [require("go"), "tool", "pprof", "-top", "-unit=minimum", "-sample_index=" + index, path],
            env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), stderr=subprocess.DEVNULL).decode("utf-8")
        assert re.search(r"Total samples = (\d+)", text).group(1) == str(counted[event])


def test_pages_have_both(touched, toucher, require, tmp_path):  # noqa: F811
    pages = touched(1)
    assert b'"page-faults"' in pages.get("flamegraph")
    path = tmp_path / "both.pb.gz"

    def has_faults():
        """Takes a profile while pages are touched, and looks for the function in it."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(pages.get, "debug/pprof/profile?seconds=1")
            while not asked.done():
                ask(toucher, 1)
        path.write_bytes(asked.result())
        text = subprocess.check_output(
            [require("go"), "tool", "pprof", "-traces", "-sample_index=page_faults", str(path)],
            env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), stderr=subprocess.DEVNULL).decode("utf-8")
        return " touch\n" in text

    wait_for(has_faults)
    end(pages.run)


@pytest.mark.parametrize("kind", KINDS)
def test_pushes_have_both(touched, backend, store, kind):  # noqa: F811
    server = backend(kind)
    pages = touched(1, "--push", server.url())
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr
    counted = dict(store.select("SELECT event, sum(samples) FROM windows GROUP BY event"))
    sums = server.values()
    assert sums["page_faults/count"] == counted["page-faults:1"]
    assert sums["samples/count"] == counted["cpu"]


def test_the_configuration_has_events(site, tmp_path, store):  # noqa: F811
    config = tmp_path / "agent.yaml"
    config.write_text("event: [cpu-clock, context-switches]\nwindow: 0.2s\n")
    pages = site("--config", config)
    wait_for(lambda: {event for event, in store.select("SELECT DISTINCT event FROM windows")}
             == {"cpu", "context-switches:1"} if os.path.exists(store.path) else False)
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr
