# SPDX-License-Identifier: BSD-2-Clause
"""The CPU budget lowers the rate of some services only."""

import json
import os
import re
import signal
import subprocess

import pytest

from agents import end, named, own, total
from conftest import wait_for
from test_agent_http import site  # noqa: F401 (fixture)

MODERATE = ["moderate-%d" % number for number in range(4)]

# Keeps the processes of other tests out.
ONLY_OURS = json.dumps({"source_labels": ["service_name"], "regex": own("(busy|moderate-.)"),
                        "action": "keep"})


def mean_ns(require, pages, service, tmp_path):
    """The mean nanoseconds per sample of SERVICE in a pprof profile of the next two seconds."""
    path = tmp_path / "scraped.pb.gz"
    path.write_bytes(pages.get("debug/pprof/profile?seconds=2&service=" + own(service)))
    text = subprocess.check_output(
        [require("go"), "tool", "pprof", "-raw", str(path)],
        env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), stderr=subprocess.DEVNULL).decode("utf-8")
    rows = re.findall(r"^ *(\d+) +(\d+): ", text, re.MULTILINE)
    return sum(int(value) for _, value in rows) / sum(int(count) for count, _ in rows)


def used_s(program):
    """The CPU time of a single-threaded program."""
    with open("/proc/%d/schedstat" % program.pid, encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def rates_by_time(store):
    """{window's start: {service: {rate}}}"""
    found = {}
    for start, service, amounts in store.amounts():
        found.setdefault(start, {}).setdefault(service, set()).update(
            round(1e9 * count / value) for count, value in amounts)
    return found


@pytest.mark.prove("cost")
@pytest.mark.alone
def test_the_busiest_service_is_lowered_first(any_python, target, site, store, report, require,  # noqa: F811
                                              tmp_path, measured):
    """At first only its rate is lowered.  Its share stays right, because its samples count for more."""
    programs = {"busy": target(any_python, "busy.py", environment=named("busy"))}
    for name in MODERATE:
        programs[name] = target(any_python, "shares.py", str(tmp_path / name), "0.3", "timer",
                                environment=named(name))
    pages = site("--window", "1s", "-r", "400", "--cpu-budget", "0.001%", "--relabel", ONLY_OURS)
    before = {name: used_s(program) for name, program in programs.items()}
    wait_for(lambda: pages.metrics()["pybpfprof_rate_lowered_total"]['limit="cpu",of="services"'] >= 2)
    wait_for(lambda: any(100 in services.get(own("busy"), ()) for services in rates_by_time(store).values()))
    assert mean_ns(require, pages, "busy", tmp_path) >= 1e9 / 100
    assert mean_ns(require, pages, MODERATE[0], tmp_path) < 1e9 / 100
    assert pages.metrics()["pybpfprof_services"]
    used = {name: used_s(program) - before[name] for name, program in programs.items()}
    end(pages.run)
    first = re.search(r"lowered the rate of the services .*", pages.run.stderr).group(0)
    assert first.startswith("lowered the rate of the services with the most samples, %s (400 to 200 Hz): the agent used"
                            % own("busy")), first
    found = rates_by_time(store).values()
    for rate in 400, 200, 100:
        assert any(services.get(own("busy")) == {rate} and
                   all(services.get(own(name), {400}) == {400} for name in MODERATE)
                   for services in found), rate
    windows = store.check()
    rows = report()
    assert total(rows) > sum(row[1] for row in windows.values())
    parts = {name: total(row for row in rows if row[0] == own(name)) for name in programs}
    moderate = sum(parts[name] for name in MODERATE)
    expected = used["busy"] / sum(used[name] for name in MODERATE)
    measured("samples of a service that was lowered, for one of the others", "%.2f" % (parts["busy"] / moderate),
             "%.2f to %.2f" % (0.75 * expected, 1.33 * expected))
    assert 0.75 * expected < parts["busy"] / moderate < 1.33 * expected, (parts, used)


def test_an_unrelated_reload_keeps_lowered_rates(site, store, tmp_path):  # noqa: F811
    """The rate of all services is lowered here, as no service has samples."""
    config = tmp_path / "agent.yaml"
    config.write_text("window: 1s\n")
    pages = site("--config", str(config), "-r", "400", "--cpu-budget", "0.01%", "--relabel", ONLY_OURS)
    wait_for(lambda: pages.metrics()["pybpfprof_rate_hertz"][""] <= 100)
    config.write_text("window: 0.5s\n")
    os.kill(pages.run.process.pid, signal.SIGHUP)
    pages.run.wait_said("agent.yaml again")
    newest = max(store.windows())
    wait_for(lambda: max(store.windows()) > newest + 4)
    end(pages.run)
    rates = store.rates()
    assert rates == sorted(rates, reverse=True) and rates[0] == 400
    store.check()
