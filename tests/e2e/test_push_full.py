# SPDX-License-Identifier: BSD-2-Clause
"""A backend at its series limit: known series go on, only new ones are refused."""

import collections
import gzip
import json
import re
import threading

import pytest

from agents import end, named, own
from conftest import wait_for
from push_servers import READERS
from test_push import WINDOW, backend, busy, end_targets, spooled, stored_samples, summary  # noqa: F401

LIMIT = "Maximum active series limit exceeded (4/4), reduce the number of active streams (reduce labels)"


class Full:
    """A Pyroscope that, once `closed`, takes only the label sets it already has from each request. If it refuses
    any, it answers STATUS."""

    def __init__(self, server, status):
        self.server, self.status = server, status
        self.closed = False
        self.lock = threading.Lock()
        self.has = {}       # {(labels, start): samples}: duplicates count once
        self.requests = []  # [{service: samples}] in order
        server.answer = self.answer

    def answer(self, handler, request):
        body = gzip.decompress(request.body) if self.server.kind == "otlp" else request.body
        profiles = list(READERS[self.server.kind](body))
        with self.lock:
            services = collections.Counter()
            for one in profiles:
                services[self.service(one.labels)] += sum(one.stacks.values())
            self.requests.append(services)
            known = {labels for labels, _ in self.has}
            refused = [i for i, one in enumerate(profiles) if self.closed and one.labels not in known]
            for i, one in enumerate(profiles):
                if i not in refused:
                    self.has[one.labels, one.start] = sum(one.stacks.values())
        if not refused:
            self.server.take(handler, request)
            return
        said = "; ".join("push series with index %d and id  failed: resource_exhausted: %s" % (i, LIMIT)
                         for i in refused)
        handler.reply(self.status, "application/json",
                      json.dumps({"code": "resource_exhausted", "message": said}).encode())

    def service(self, labels):
        return dict(labels)["service.name" if self.server.kind == "otlp" else "service_name"]

    def services(self):
        with self.lock:
            return {self.service(labels) for labels, _ in self.has}

    def newest(self, name):
        """The start of the newest window that has arrived for NAME."""
        with self.lock:
            return max(start for labels, start in self.has if self.service(labels) == own(name))

    def with_(self, name):
        """The requests that contain the service NAME."""
        with self.lock:
            return [services for services in self.requests if own(name) in services]


@pytest.fixture
def full(backend):  # noqa: F811
    """full(KIND, STATUS): a Full."""
    return lambda kind, status: Full(backend(kind), status)


def check_sums(run, server, store):
    """Each sample arrived or was counted as refused by the limit. OTLP counts the whole request as refused."""
    delivered, handed = summary(run, server.server.url())
    refused = re.findall(r": (\d+) samples in \d+ requests: (.*)", run.stderr)
    assert [why for _, why in refused] == ["refused: the backend's series limit"], run.stderr
    assert handed == stored_samples(store) == delivered + int(refused[0][0]) > delivered
    once = server.with_("late")[0] if server.server.kind == "otlp" else {}
    beside = sum(once.values()) - once.get(own("late"), 0)
    assert delivered == sum(server.has.values()) - beside


def check_refused_once(server):
    """The new service is sent at most twice: with the others, if they were in its first window, then alone."""
    requests = server.with_("late")
    assert len(requests) <= 2 and list(requests[-1]) == [own("late")]


@pytest.mark.parametrize("kind,status", [("pyroscope", 429), ("otlp", 500)])
def test_a_new_service_does_not_stop_others(kind, status, any_python, target, full, busy, agent, store):  # noqa: F811
    """Only the new service is refused, once. The others' newest windows arrive."""
    server, api = full(kind, status), target(any_python, "busy.py", environment=named("api"))
    run = agent(*WINDOW, "--push", server.server.url())
    wait_for(lambda: server.services() == {own("web"), own("api")})
    server.closed = True
    late = target(any_python, "busy.py", environment=named("late"))
    wait_for(lambda: [own("late")] in map(list, server.with_("late")))
    refused = len(store.windows())
    wait_for(lambda: len(store.windows()) >= refused + 6)
    newest = store.select("SELECT max(start_ns) FROM windows")[0][0]
    wait_for(lambda: min(server.newest("web"), server.newest("api")) >= newest)
    end_targets(store, busy, api, late)
    wait_for(lambda: not spooled(store))
    end(run)
    assert run.status == 1
    check_sums(run, server, store)
    check_refused_once(server)
    said = [line for line in run.stderr.splitlines() if "series limit reached" in line]
    assert len(said) == 1 and "answered %d" % status in said[0], run.stderr
    assert "(4/4)" in said[0] and "max-global-series-per-tenant" in said[0]


def test_waiting_windows_are_sent_without_a_refused_service(any_python, target, full, busy, agent, store):  # noqa: F811
    """Several windows with the new service wait on disk. After the first refusal the others are sent without it."""
    server, api = full("pyroscope", 429), target(any_python, "busy.py", environment=named("api"))
    run = agent(*WINDOW, "--push", server.server.url())
    wait_for(lambda: server.services() == {own("web"), own("api")})
    server.server.stop()
    server.closed = True
    late = target(any_python, "busy.py", environment=named("late"))
    wait_for(lambda: len(store.select("SELECT window FROM services WHERE label_set IN "
                                      "(SELECT id FROM label_sets WHERE labels LIKE '%%%s%%')" % own("late"))) >= 4)
    end_targets(store, busy, api, late)
    server.server.start()
    wait_for(lambda: not spooled(store))
    end(run)
    assert run.status == 1
    check_sums(run, server, store)
    check_refused_once(server)
