# SPDX-License-Identifier: BSD-2-Clause
"""Helpers for the agent's tests: its store, its runs and its reports."""

import contextlib
import json
import os
import re
import signal
import sqlite3

import pytest

from folded import parse_folded

SERVICE = re.compile(r'service "(.*)"')


def numbers(packed):
    """Decodes the varints that user/store/packing.h packs."""
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield number
            number = shift = 0


class Store:
    """A store's folder and its database."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.path = os.path.join(self.folder, "profiles.db")

    def select(self, *queries):
        """Runs the queries in one transaction.  Returns a list of rows per query, or a single query's rows."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as database:
            database.execute("BEGIN")
            rows = [database.execute(query).fetchall() for query in queries]
        return rows if len(rows) > 1 else rows[0]

    def windows(self):
        """{number: (events, samples, lost, outcomes)}; checks each window's sums against its services."""
        if not os.path.exists(self.path):
            return {}
        counted = {}
        services, rows = self.select(
            "SELECT window, samples FROM services",
            "SELECT id, events, samples, lost, outcomes FROM windows")
        for window, packed in services:
            counted[window] = counted.get(window, 0) + sum(list(numbers(packed))[1::2])
        windows = {}
        for number, events, samples, lost, outcomes in rows:
            assert events == samples + lost
            assert samples == sum(json.loads(outcomes).values())
            assert samples == counted.get(number, 0)
            windows[number] = (events, samples, lost, outcomes)
        assert set(counted) <= set(windows)
        return windows

    def amounts(self):
        """[(window's start, service, [(samples, nanoseconds that these represent)])]"""
        found = []
        for start, rate, labels, samples, values in self.select(
                "SELECT start_ns, rate_hz, labels, services.samples, sample_values FROM windows"
                " JOIN services ON window = windows.id JOIN label_sets ON label_set = label_sets.id"):
            counts = list(numbers(samples))[1::2]
            values = list(numbers(values)) if values else [count * round(1e9 / rate) for count in counts]
            found.append((start, json.loads(labels)["service_name"], list(zip(counts, values))))
        return found

    def rates(self):
        """The highest sampling rate of any service in each window, in order of time."""
        return [rate for _, rate in self.select(
            "SELECT start_ns, max(rate_hz) FROM windows GROUP BY start_ns ORDER BY 1")]

    def check(self):
        assert self.select("PRAGMA integrity_check") == [("ok",)]
        return self.windows()

    def bytes(self):
        return sum(os.path.getsize(os.path.join(self.folder, name))
                   for name in os.listdir(self.folder))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def agent(profile, store):
    """agent(ARGUMENT...): an agent that is sampling."""
    def start(*arguments, **options):
        run = profile.start("agent", "--store", store.folder, "--cpu-budget", "off", *arguments,
                            files=False, **options)
        run.wait_sampling()
        return run
    return start


def end(run):
    run.process.send_signal(signal.SIGTERM)
    run.finish()
    assert "do not add up" not in run.stderr
    return run


@pytest.fixture
def report(profile, store):
    """report(ARGUMENT...): [(service, frames, count)], sorted."""
    def read(*arguments, status=0):
        run = profile.attempt("report", "--store", store.folder, "-f", "folded", "-o", "-",
                              *arguments)
        assert run.status == status, run.stderr
        rows = []
        for line in run.stdout.decode("utf-8").splitlines():
            service, _, rest = line.partition(";")
            frames, count = parse_folded(rest + "\n")[0]
            rows.append((SERVICE.fullmatch(service).group(1), tuple(map(str, frames)), count))
        return sorted(rows)
    return read


def label_sets(store):
    """All label sets in the store, in order of their IDs."""
    if not os.path.exists(store.path):
        return []
    return [json.loads(text) for (text,) in store.select("SELECT labels FROM label_sets ORDER BY id")]


def services(store):
    return {labels["service_name"] for labels in label_sets(store)}


def total(rows):
    return sum(count for _, _, count in rows)


def own(name):
    """NAME, made unique to this test process: the agent also sees the targets of tests that run in parallel."""
    return "%s-%d" % (name, os.getpid())


def named(name):
    return {"OTEL_SERVICE_NAME": own(name)}


# Makes an agent keep only processes with an environment from named().
ONLY_OWN = ("--relabel", json.dumps({"source_labels": ["service_name"], "regex": ".*" + own(""), "action": "keep"}))
