# SPDX-License-Identifier: BSD-2-Clause
"""The agent pushes to real servers, which tests/backends/ builds and runs.

`make prove PARTS=push` builds them first.  Tests of missing servers are skipped.
"""

import json
import os
import sys
import urllib.error

import pytest

from agents import end, named, own
from answering import ask
from conftest import ROOT, wait_for
from test_agent_http import site  # noqa: F401 (fixture)
from test_push import summary, summed
from touching import LINE, PAGES, toucher  # noqa: F401 (a fixture)

sys.path.insert(0, os.path.join(ROOT, "tests", "backends"))
import build_backends  # noqa: E402
import servers  # noqa: E402

pytestmark = pytest.mark.prove("push")

# {service: part of the file name of its hottest function}
SERVICES = {"web": "/busy.py:", "many": " (many_"}

# server, kind of push, resulting profile types
WAYS = [("pyroscope", "pyroscope", ("samples:count", "cpu:nanoseconds")),
        ("pyroscope", "otlp", ("cpu:nanoseconds",)),
        ("otelcol", "otlp", ("samples:count",)),
        ("parca", "parca", ("samples:count", "cpu:nanoseconds"))]


@pytest.fixture
def server(tmp_path_factory):
    """server(NAME, OPTION...): a servers.Server."""
    running = []

    def start(name, *options, **more):
        if not build_backends.is_there(name):
            pytest.skip("no %s here: make prove PARTS=push builds it" % name)
        running.append(servers.Server(name, tmp_path_factory.mktemp(name), options, **more))
        return running[-1]
    yield start
    for one in running:
        one.end()


@pytest.fixture
def load(any_python, target):
    """One service with few stacks, and one with ever new stacks."""
    target(any_python, "busy.py", environment=named("web"))
    target(any_python, "many_stacks.py", 2000, environment=named("many"))
    return target


def stored(report, name):
    """{frames: samples} of the service NAME."""
    sums = summed(report("--full-filenames", "--label", "service_name=" + own(name)))
    return {frames: count for (_, frames), count in sums.items()}


def is_same(backend, report, of_type, rate):
    """Whether the server's stacks equal the store's: function, file, line and count."""
    # Parca multiplies the counts of profiles that have a period by it.
    counts = of_type == "samples:count" and backend.name != "parca"
    period = 1 if counts else round(1e9 / rate)
    for name, file in SERVICES.items():
        wanted = {frames: count * period for frames, count in stored(report, name).items()}
        assert any(file in frames[-1] for frames in wanted), name
        if backend.stacks(own(name), of_type) != wanted:
            return False
    return True


def is_all_delivered(pages, url, store, refused=0):
    """Whether the queue is empty, and all stored samples were delivered, except REFUSED ones."""
    samples = sum(row[1] for row in store.windows().values())
    metrics, backend = pages.metrics(), 'backend="%s"' % url
    return (metrics["pybpfprof_push_samples_total"][backend + ',outcome="delivered"'] + refused >= samples
            and metrics["pybpfprof_push_queued_bytes"][backend] == 0)


@pytest.mark.parametrize("name,kind,types", WAYS, ids=["%s-as-%s" % way[:2] for way in WAYS])
@pytest.mark.parametrize("rate,window_s", [(199, 1), (9999, 3)], ids=["small", "in-parts"])
def test_the_server_has_all_samples(name, kind, types, rate, window_s, load, server, site, report, store):  # noqa: F811
    backend = server(name)
    url = backend.url(kind)
    pages = site("-r", str(rate), "--window", "%ds" % window_s, "--push", url)
    wait_for(lambda: len(store.windows()) >= 2)
    # The agent's end waits only a few seconds for pushes, which may be too short on a busy machine.
    load.end()
    count = len(store.windows())
    wait_for(lambda: len(store.windows()) > count and is_all_delivered(pages, url, store))
    run = end(pages.run)
    assert run.status == 0, run.stderr + backend.said()
    everything = sum(row[1] for row in store.check().values())
    assert summary(run, url) == (everything, everything)
    assert len(stored(report, "many")) > (5000 if rate == 9999 else 20)
    for of_type in types:
        wait_for(lambda: is_same(backend, report, of_type, rate), of_type)


@pytest.mark.parametrize("name", ["pyroscope", "parca"])
def test_the_server_has_both_events(name, server, site, report, store, toucher):  # noqa: F811
    """Each event has its own values: page faults as in the store, and nanoseconds for the clock."""
    backend = server(name)
    url = backend.url(name)
    pages = site("-e", "cpu-clock", "-e", "page-faults:1", "-r", "199", "--window", "1s", "--push", url)

    def of(event):
        try:
            rows = report("--show", event, "--full-filenames", "--label", "service_name=toucher.py")
        except AssertionError:
            return {}
        return {frames: count for (_, frames), count in summed(rows).items()}

    def faults():
        return sum(count for frames, count in of("page-faults").items() if frames[-1].endswith("toucher.py:%d)" % LINE))

    wait_for(lambda: (ask(toucher, 1), faults())[1])
    before = faults()
    ask(toucher, 50)
    wait_for(lambda: faults() >= before + 50 * PAGES)
    toucher.kill()
    toucher.wait()
    count = len(store.windows())
    wait_for(lambda: len(store.windows()) > count + 2)
    run = end(pages.run)
    assert run.status == 0, run.stderr + backend.said()
    clock = {frames: count * round(1e9 / 199) for frames, count in of("cpu-clock").items()}
    assert clock and faults() >= 50 * PAGES
    wait_for(lambda: backend.stacks("toucher.py", "page_faults:count") == of("page-faults"))
    wait_for(lambda: backend.stacks("toucher.py", "cpu:nanoseconds") == clock)


def labels_more(count):
    """Relabel options that give the service "many" COUNT more labels."""
    return [word for i in range(count) for word in ("--relabel", json.dumps(
        {"source_labels": ["service_name"], "regex": own("many"), "target_label": "more_%02d" % i,
         "replacement": "x"}))]


def test_a_refused_series_does_not_affect_others(load, server, agent, report, store):
    """The server accepts the other series of the request.  The agent's count of delivered samples matches."""
    backend = server("pyroscope", "-validation.max-label-names-per-series=20")
    run = agent("-r", "199", "--window", "1s", "--push", backend.url("pyroscope"),
                *labels_more(19))
    wait_for(lambda: len(store.windows()) >= 3)
    end(run)
    assert run.status == 1
    everything = sum(row[1] for row in store.check().values())
    refused = sum(stored(report, "many").values())
    assert refused and summary(run, backend.url("pyroscope")) == (everything - refused, everything)
    assert " label names; limit 20" in run.stderr
    wanted = stored(report, "web")
    wait_for(lambda: backend.stacks(own("web"), "samples:count") == wanted)
    assert not backend.stacks(own("many"), "samples:count")


def has(backend, service, of_type):
    """Whether the server has stacks of SERVICE.  Pyroscope may answer with an error until it has any data."""
    try:
        return bool(backend.stacks(service, of_type))
    except urllib.error.HTTPError:
        return False


# For each kind of push to Pyroscope, its profile types: a service has one series per type.
@pytest.mark.parametrize("kind,types", [way[1:] for way in WAYS if way[0] == "pyroscope"])
def test_a_full_server_refuses_new_services(kind, types, any_python, load, server, site, report, store):  # noqa: F811
    """The server has room for two services.  Only the third one is refused."""
    limit = len(SERVICES) * len(types)
    backend = server("pyroscope", "-ingester.max-global-series-per-tenant=%d" % limit)
    url = backend.url(kind)
    # Other processes must not take series.
    only = {"action": "keep", "source_labels": ["service_name"], "regex": own("(web|many|late)")}
    pages = site("-r", "199", "--window", "1s", "--push", url, "--relabel", json.dumps(only))

    def refused():
        return pages.metrics()["pybpfprof_push_samples_total"]['backend="%s",outcome="series_limit"' % url]
    wait_for(lambda: all(has(backend, own(name), types[0]) for name in SERVICES))
    load(any_python, "busy.py", environment=named("late"))
    wait_for(lambda: refused() > 0)
    count = len(store.windows())
    wait_for(lambda: len(store.windows()) > count + 2)
    load.end()
    count = len(store.windows())
    wait_for(lambda: len(store.windows()) > count and is_all_delivered(pages, url, store, refused()))
    given_up = refused()
    run = end(pages.run)
    assert run.status == 1
    everything = sum(row[1] for row in store.check().values())
    late = sum(stored(report, "late").values())
    # With OTLP the first refused request also had samples of other services.
    assert late == given_up if kind == "pyroscope" else 0 < late <= given_up
    assert summary(run, url) == (everything - given_up, everything)
    assert "series limit exceeded (%d/%d)" % (limit, limit) in run.stderr
    for of_type in types:
        wait_for(lambda: is_same(backend, report, of_type, 199), of_type)
        assert not backend.stacks(own("late"), of_type)


@pytest.mark.parametrize("kind", ["pyroscope", "otlp"])
def test_labels_over_the_limit_are_not_sent(kind, load, server, agent, report, store):
    backend = server("pyroscope")
    run = agent("-r", "199", "--window", "1s", "--push", backend.url(kind), *labels_more(40))
    wait_for(lambda: len(store.windows()) >= 2)
    end(run)
    assert run.status == 0, run.stderr
    assert run.stderr.count("are sent without more_") == 1
    wait_for(lambda: is_same(backend, report, "cpu:nanoseconds", 199))


def test_tenants(load, server, agent, report, store):
    """Pushes without a tenant are refused, with a message, and are not retried."""
    backend = server("pyroscope", "-auth.multitenancy-enabled=true",
                     headers={"X-Scope-OrgID": "us"})
    url = backend.url("pyroscope")
    run = agent("-r", "199", "--window", "1s", "--push", url, "--push", url + " tenant=us",
                "--push", url + " tenant=eu")
    wait_for(lambda: len(store.windows()) >= 2)
    end(run)
    assert run.status == 1
    assert "%s: answered 401" % url in run.stderr
    everything = sum(row[1] for row in store.check().values())
    assert summary(run, url + ":") == (0, everything)
    for tenant in "us", "eu":
        assert summary(run, "%s tenant=%s:" % (url, tenant)) == (everything, everything)
        backend.headers["X-Scope-OrgID"] = tenant
        wait_for(lambda: is_same(backend, report, "samples:count", 199))


def test_parca_answers_200_on_an_unknown_path(load, server, agent, store):
    """The agent notices that the answer is not from an OTLP server."""
    backend = server("parca")
    run = agent("--window", "1s", "--push", backend.url("otlp"))
    wait_for(lambda: len(store.windows()) >= 2)
    end(run)
    assert run.status == 1
    assert "is the URL right?" in run.stderr
