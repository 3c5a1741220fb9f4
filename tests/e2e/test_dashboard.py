# SPDX-License-Identifier: BSD-2-Clause
"""The Grafana dashboard uses the agent's metrics with their actual labels."""

import json
import os
import re

import pytest

from conftest import ROOT, wait_for
from test_agent_http import site  # noqa: F401 (a fixture)
from test_pods import cluster  # noqa: F401 (a fixture)
from test_prometheus import pages  # noqa: F401 (a fixture)
from push_servers import authority, backend  # noqa: F401 (fixtures)

DASHBOARD = os.path.join(ROOT, "deploy", "grafana", "dashboard.json")
SERIES = re.compile(r"\b((?:pybpfprof|process)_[a-z_]+)(?=[{,])")
GROUPED = re.compile(r"sum by \(([^)]*)\) \((?:(?:rate|increase)\()?(\w+)\{")
# Labels that Prometheus adds.
OF_TARGET = {"instance", "job"}
# Metrics that are sums of others on the dashboard, or that require no action.
LEFT_OUT = {"pybpfprof_events_total", "pybpfprof_ring_full_total", "pybpfprof_code_objects_total",
            "pybpfprof_native_resumptions_total", "pybpfprof_windows_total", "process_start_time_seconds"}


@pytest.fixture(scope="module")
def dashboard():
    with open(DASHBOARD, encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture
def exposed(pages):  # noqa: F811
    """{metric: its label names} of an agent with all features on."""
    # The agent must have found its targets.
    wait_for(lambda: "pybpfprof_targets" in pages.metrics() and pages.metrics()["pybpfprof_targets"])
    return {name: set(re.findall(r'(\w+)="', " ".join(values)))
            for name, values in pages.metrics().items()}


def asked(dashboard):
    """All queries of the dashboard."""
    variables = dashboard["templating"]["list"]
    return [each["expr"] for panel in dashboard["panels"] for each in panel.get("targets", ())] + [
        each["definition"] for each in variables if "definition" in each]


def test_every_metric_is_shown(dashboard, exposed):
    """All metrics except LEFT_OUT are shown, and all shown metrics and labels exist."""
    names = {name for text in asked(dashboard) for name in SERIES.findall(text)}
    assert len(names) > 10 and names <= set(exposed)
    for text in asked(dashboard):
        for labels, name in GROUPED.findall(text):
            assert set(labels.split(", ")) <= exposed[name] | OF_TARGET
    assert set(exposed) - names == LEFT_OUT


def test_panels_do_not_share_a_place_or_an_id(dashboard):
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(places)) == len(set(identifiers)) == len(places)
