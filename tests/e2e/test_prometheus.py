# SPDX-License-Identifier: BSD-2-Clause
"""The agent's metrics, scraped by a real Prometheus."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest

from agents import end, named
from conftest import ROOT, missing, wait_for, wait_used
from test_agent_http import only, site, stored  # noqa: F401 (fixtures among them)
from test_pods import cluster  # noqa: F401 (a fixture)
from test_push import authority, backend, end_targets  # noqa: F401 (fixtures among them)

sys.path.insert(0, os.path.join(ROOT, "tests", "backends"))
import prometheus  # noqa: E402
from servers import free_port  # noqa: E402

pytestmark = pytest.mark.prove("push")


@pytest.fixture(scope="module", autouse=True)
def provided():
    outcome = prometheus.provide()
    if outcome.outcome == "unreachable":
        pytest.skip("Prometheus cannot be fetched: " + outcome.reason)
    if outcome.outcome != "there":
        missing("Prometheus: " + outcome.reason)


@pytest.fixture
def pages(any_python, target, site, backend, cluster):  # noqa: F811
    """An agent with every feature that has metrics."""
    target(any_python, "busy.py", environment=named("web"))
    server = cluster()
    return site("--window", "0.5s", "-r", "199", "--push", backend("otlp").url(), "--push",
                backend("parca").url(), "--kubernetes", server.url, "--kubernetes-credentials",
                str(server.credentials))


def test_promtool_accepts_the_metrics(pages):
    wait_for(lambda: pages.metrics()["pybpfprof_windows_total"][""] > 1)
    text = pages.get("metrics")
    assert b"\npybpfprof_push_" in text and b"\npybpfprof_pods" in text
    done = subprocess.run([prometheus.program_of("promtool"), "check", "metrics"], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.fixture
def scraping(tmp_path):
    """scraping(PAGES): query(QUERY) of a Prometheus that scrapes the agent; it returns {labels: value}."""
    running = []

    def start(pages):
        folder = tmp_path / "prometheus"
        folder.mkdir()
        server = prometheus.Prometheus(folder, pages.address, "127.0.0.1:%d" % free_port())
        running.append(server)
        return lambda query: ask(server, query)
    yield start
    for server in running:
        server.end()


def ask(server, query):
    url = "http://%s/api/v1/query?%s" % (server.address, urllib.parse.urlencode({"query": query}))
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
    except (urllib.error.URLError, ConnectionError):
        return {}
    return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in found}


def test_prometheus_scrapes_all_metrics(pages, scraping):
    """Prometheus has all metrics, and the counters of one scrape add up."""
    query = scraping(pages)
    wait_for(lambda: list(query("up").values()) == [1])
    wait_for(lambda: sum(query("pybpfprof_events_total").values()) > 0)
    added = query("sum(pybpfprof_samples_total) + sum(pybpfprof_samples_lost_total)"
                  " - sum(pybpfprof_events_total)")
    assert list(added.values()) == [0]
    names = {dict(labels)["__name__"] for labels in query('{job="agent"}')}
    assert names >= set(pages.metrics())


def test_the_last_values_equal_the_stores(any_python, target, site, store, scraping, only):  # noqa: F811
    """Once the only targets have ended, the scraped counters equal the store's, for each outcome."""
    pages = site("--window", "0.5s", "-r", "499", "--comm", os.path.basename(only))
    query = scraping(pages)
    wait_for(lambda: list(query("up").values()) == [1])
    for _ in range(3):
        running = target(any_python, only)
        wait_used(0.5, running.pid)
        running.end()

    def scraped():
        values = {dict(labels)["outcome"]: value
                  for labels, value in query("pybpfprof_samples_total").items()}
        values["events"], values["lost"] = (
            sum(query("pybpfprof_%s_total" % name).values()) for name in ("events", "samples_lost"))
        return {outcome: value for outcome, value in values.items() if value}
    end_targets(store)
    wait_for(lambda: stored(store)["python"] > 400 and stored(store) == scraped())
    end(pages.run)
    assert stored(store) == scraped()
