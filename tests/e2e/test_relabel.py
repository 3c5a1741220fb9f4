# SPDX-License-Identifier: BSD-2-Clause
"""Relabel rules change the labels of stored samples or drop samples, and dropped samples are counted."""

import gzip
import json
import os
import re
import signal

import pytest

from agents import end, label_sets, named, own, services, total
from conftest import wait_for
from test_agent_config import config  # noqa: F401 (a fixture)
from test_agent_http import only, site  # noqa: F401 (fixtures among them)

WINDOW = ("--window", "0.2s", "-r", "199")


def test_labels_are_changed(any_python, target, agent, report, store, config):
    for name in "web", "api":
        target(any_python, "busy.py", environment=named(name))
    run = agent(*WINDOW, "--config", config("""
relabel:
  - source_labels: [service_name]
    regex: (web|api)-(.*)
    target_label: service_name
    replacement: both-${2}
  - source_labels: [__meta_process_cmdline, __meta_process_user]
    separator: " as "
    regex: .*busy.py as (.*)
    target_label: who
  - action: labeldrop
    regex: comm|python_version
"""))
    wait_for(lambda: own("both") in services(store))
    end(run)
    assert run.status == 0, run.stderr
    found, = (labels for labels in label_sets(store) if labels["service_name"] == own("both"))
    assert found["who"] == "root" and "comm" not in found and "python_version" not in found
    assert found["node"] and not any(name.startswith("__") for name in found)
    # Both services are merged into one, with all their samples.
    assert not {own("web"), own("api")} & services(store)
    windows = store.check()
    assert total(report()) == sum(row[1] for row in windows.values())
    assert total(report("--label", "who=root")) > 0


def test_dropped_samples_are_counted(any_python, target, site, store, only):  # noqa: F811
    """Stored and dropped samples add up to all samples."""
    programs = [target(any_python, only, environment=named(name)) for name in ("web", "api")]
    rule = {"source_labels": ["service_name"], "regex": own("web"), "action": "keep"}
    pages = site(*WINDOW, "--comm", os.path.basename(only), "--relabel", json.dumps(rule))

    def stored():
        return sum(row[1] for row in store.windows().values())

    def dropped():
        return sum(pages.metrics().get("pybpfprof_relabel_dropped_samples_total", {}).values())

    def sampled():
        return sum(pages.metrics()["pybpfprof_samples_total"].values())

    wait_for(lambda: stored() and dropped())
    for program in programs:
        program.end()
    wait_for(lambda: stored() + dropped() == sampled())
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr
    assert services(store) == {own("web")}
    store.check()


def test_rules_apply_to_the_page_and_the_scrape(any_python, target, site):  # noqa: F811
    for name in "web", "api":
        target(any_python, "busy.py", environment=named(name))
    rule = {"source_labels": ["service_name"], "regex": own("api"), "action": "drop"}
    pages = site(*WINDOW, "--relabel", json.dumps(rule))

    def has_functions(name):
        """Whether the service's profile contains a function of busy.py."""
        text = gzip.decompress(pages.get("debug/pprof/profile?seconds=0.5&service=" + own(name)))
        return b"spin" in text

    wait_for(lambda: has_functions("web"))
    assert not has_functions("api")
    shown = {row.get("service") for row in json.loads(pages.get("status"))["targets"]}
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr
    assert own("web") in shown and own("api") not in shown


def test_reload(any_python, target, agent, store, config):
    """New rules apply from the next window on. Bad rules are refused, and the old ones stay."""
    target(any_python, "busy.py", environment=named("web"))
    rule = "relabel:\n  - target_label: which\n    replacement: %s\n"

    def which():
        return [labels["which"] for labels in label_sets(store) if labels["service_name"] == own("web")]

    run = agent(*WINDOW, "--config", config(rule % "first"))
    wait_for(lambda: which() == ["first"])
    config(rule % "second")
    run.process.send_signal(signal.SIGHUP)
    wait_for(lambda: which() == ["first", "second"])
    config("relabel:\n  - target_label: which\n    replacement: third\n    regex: (\n")
    run.process.send_signal(signal.SIGHUP)
    run.wait_said("the configuration is unchanged")
    count = len(store.windows())
    wait_for(lambda: len(store.windows()) > count + 1)
    end(run)
    assert run.status == 0, run.stderr
    assert "agent.yaml:2: '(' is not a valid regular expression" in run.stderr
    assert "the configuration is unchanged" in run.stderr
    assert which() == ["first", "second"]
    store.check()


@pytest.mark.parametrize("text,says", [
    ("- {source_labels: [comm], regex: '(', action: drop}", ":2: '(' is not a valid regular expression"),
    ("- {target_label: x}\n- {action: fold}", ":3: a rule's action 'fold' is not one of"),
    ("- {target_label: x, divider: y}", ":2: a rule has no 'divider'"),
    ("- {target_label: a.b}", ":2: a rule's target_label 'a.b' is not a label name"),
    ("- comm", ":2: 'relabel' must be a list of rules")])
def test_a_bad_rule_is_refused(text, says, profile, config):
    run = profile.attempt("agent", "--store", "x", "--config", config("relabel:\n" + text + "\n"))
    assert run.status == 2
    assert says in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr


def test_print_config_shows_the_source_of_rules(profile, config):
    """--print-config shows the source of the rules, and its output is an equivalent configuration."""
    path = config("relabel:\n  - source_labels: [comm, node]\n    regex: 'a\\.\"b'\n    action: drop\n")
    run = profile.attempt("agent", "--config", path, "--print-config")
    printed = run.stdout.decode()
    line, = (line for line in printed.splitlines() if line.startswith("relabel:"))
    assert line.endswith("# %s:2" % path)
    again = profile.attempt("agent", "--config", config(printed), "--print-config")
    assert line.partition("  # ")[0] in again.stdout.decode()
    variable = '[{"action": "labeldrop", "regex": "comm"}]'
    run = profile.attempt("agent", "--config", path, "--print-config",
                          env=dict(os.environ, PYBPFPROF_RELABEL=variable))
    assert "relabel: %s  # PYBPFPROF_RELABEL" % variable in run.stdout.decode()


def test_a_hostile_command_line_cannot_hang_a_rule(any_python, target, agent, store):
    """Processes control the text that rules match. A match that takes too long is given up, with one
    message."""
    target(any_python, "busy.py", "a" * 3000 + "!", environment=named("web"))
    rule = {"source_labels": ["__meta_process_cmdline"], "regex": ".*((a+)+)+b",
            "target_label": "never", "replacement": "set"}
    run = agent(*WINDOW, "--relabel", json.dumps(rule))
    # Without the limit the match would take far longer than wait_for waits.
    wait_for(lambda: len(store.windows()) >= 5 and own("web") in services(store))
    end(run)
    assert run.status == 0, run.stderr
    assert len(re.findall("takes too long", run.stderr)) == 1
    assert not any("never" in labels for labels in label_sets(store))
