# SPDX-License-Identifier: BSD-2-Clause
"""Grafana's dashboard asks for what the agent's /metrics have, by the labels that they have there."""

import json
import os
import re

import pytest

from conftest import ROOT, wait_for
from test_agent_http import site  # noqa: F401 (a fixture)
from test_pods import cluster  # noqa: F401 (a fixture)
from test_prometheus import pages  # noqa: F401 (a fixture)
from test_push import authority, backend  # noqa: F401 (fixtures)

DASHBOARD = os.path.join(ROOT, "deploy", "grafana", "dashboard.json")
SERIES = re.compile(r"\b((?:pybpfprof|process)_[a-z_]+)(?=[{,])")
GROUPED = re.compile(r"sum by \(([^)]*)\) \((?:(?:rate|increase)\()?(\w+)\{")
# Prometheus adds them.
OF_TARGET = {"instance", "job"}
# What others that are shown come to, or nobody has to do anything about.
LEFT_OUT = {"pybpfprof_events_total", "pybpfprof_ring_full_total", "pybpfprof_code_objects_total",
            "pybpfprof_native_resumptions_total", "pybpfprof_windows_total", "process_start_time_seconds"}


@pytest.fixture(scope="module")
def dashboard():
    with open(DASHBOARD, encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture
def exposed(pages):  # noqa: F811
    """{metric: its labels' names}, of an agent that has all that there is."""
    # Once it has found what there is.
    wait_for(lambda: "pybpfprof_targets" in pages.metrics() and pages.metrics()["pybpfprof_targets"])
    return {name: set(re.findall(r'(\w+)="', " ".join(values)))
            for name, values in pages.metrics().items()}


def asked(dashboard):
    """All that it asks Prometheus for."""
    variables = dashboard["templating"]["list"]
    return [each["expr"] for panel in dashboard["panels"] for each in panel.get("targets", ())] + [
        each["definition"] for each in variables if "definition" in each]


def test_all_that_is_there_is_shown(dashboard, exposed):
    """But for what is left out on purpose; and nothing that is not there."""
    names = {name for text in asked(dashboard) for name in SERIES.findall(text)}
    assert len(names) > 10 and names <= set(exposed)
    for text in asked(dashboard):
        for labels, name in GROUPED.findall(text):
            assert set(labels.split(", ")) <= exposed[name] | OF_TARGET
    assert set(exposed) - names == LEFT_OUT


def test_panels_are_apart(dashboard):
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(places)) == len(set(identifiers)) == len(places)
