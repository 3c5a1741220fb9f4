# SPDX-License-Identifier: BSD-2-Clause
"""Grafana's dashboard asks for what the agent's /metrics have, by the labels that they have there."""

import json
import os
import re
import signal
import socket
import urllib.request

import pytest

from agents import wait_for
from conftest import ROOT

DASHBOARD = os.path.join(ROOT, "deploy", "grafana", "dashboard.json")
SERIES = re.compile(r"\b((?:pybpfprof|process)_[a-z_]+)(?=[{,])")
GROUPED = re.compile(r"sum by \(([^)]*)\) \((?:rate\()?(\w+)\{")
EXPOSED = re.compile(r"^(\w+)(?:\{(.*)\})? ", re.MULTILINE)
# Prometheus adds them.
OF_TARGET = {"instance", "job"}


@pytest.fixture(scope="module")
def dashboard():
    with open(DASHBOARD, encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture
def exposed(profile, any_python, target, tmp_path):
    """{metric: its labels' names}, of an agent that has something to tell."""
    target(any_python, "busy.py")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "127.0.0.1:%d" % free.getsockname()[1]
    run = profile.start("agent", "--store", tmp_path / "store", "--listen", address, files=False)
    run.wait_sampling()

    def scrape():
        with urllib.request.urlopen("http://%s/metrics" % address, timeout=60) as answer:
            return answer.read().decode()
    # Once it has found what there is.
    wait_for(lambda: "\npybpfprof_targets{" in scrape())
    text = scrape()
    run.process.send_signal(signal.SIGTERM)
    assert run.finish().status == 0, run.stderr
    return {name: set(re.findall(r'(\w+)="', labels)) for name, labels in EXPOSED.findall(text)}


def test_all_that_is_asked_for_is_there(dashboard, exposed):
    asked = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    asked += [each["definition"] for each in dashboard["templating"]["list"] if "definition" in each]
    names = {name for text in asked for name in SERIES.findall(text)}
    assert len(names) > 10 and names <= set(exposed)
    for text in asked:
        for labels, name in GROUPED.findall(text):
            assert set(labels.split(", ")) <= exposed[name] | OF_TARGET


def test_all_that_may_be_lost_is_shown(dashboard, exposed):
    """What the agent counts as missing, the dashboard has."""
    text = json.dumps(dashboard)
    assert all(name in text for name in exposed
               if re.search("lost|unknown|untold|unreadable|without_room|sink_windows", name))


def test_panels_are_apart(dashboard):
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(places)) == len(set(identifiers)) == len(places)
