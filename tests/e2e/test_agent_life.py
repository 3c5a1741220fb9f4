# SPDX-License-Identifier: BSD-2-Clause
"""What an agent is after long: some hundred services that come and go, in windows of a second.

In a short form; LIFE_SECONDS=3600 makes it long.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time

import pytest

from agents import end, total, wait_for
from conftest import children_of
from push_servers import Backend
from test_agent_http import Site, free_port

SECONDS = int(os.environ.get("LIFE_SECONDS", "60"))
SERVICES = 200
AT_ONCE = 16
RATE = 99

# Between the first third, when each service has been there, and the end: other processes of the
# machine come and go as well, and the files that they run.
GROWTH_KB = 4096
FILES_MORE = 24

# How many of those that have ended are still known to the kernel side: it may be just being told.
ENDED_MAX = 16

pytestmark = [pytest.mark.alone, pytest.mark.timed, pytest.mark.timeout(2 * SECONDS + 300)]


def resident_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s*(\d+) kB", status.read()).group(1))


def maps_of(pid):
    """{the kernel's number of a map: what it says of it}"""
    maps = {}
    for name in os.listdir("/proc/%d/fdinfo" % pid):
        # One may have been closed since.
        with contextlib.suppress(OSError), \
                open("/proc/%d/fdinfo/%s" % (pid, name), encoding="ascii") as info:
            found = dict(line.rstrip("\n").split(":\t", 1) for line in info if ":\t" in line)
            if "map_id" in found:
                maps[int(found["map_id"])] = found
    return maps


def ended(bpftool, maps):
    """How many processes that are no more the map `targets` has."""
    for number in maps:
        about = json.loads(subprocess.check_output(
            [bpftool, "--json", "map", "show", "id", str(number)]))
        if about["name"] == "targets":
            dumped = json.loads(subprocess.check_output(
                [bpftool, "--json", "map", "dump", "id", str(number)]))
            break
    keys = [int.from_bytes(bytes(int(byte, 16) for byte in one["key"]), sys.byteorder)
            for one in dumped]
    assert keys
    return sum(not os.path.exists("/proc/%d" % key) for key in keys)


class Measure:
    """What an agent and the processes that push for it take, now."""

    def __init__(self, bpftool, pid):
        family = [pid, *children_of(pid)]
        family += children_of(family[1])
        assert len(family) == 3
        maps = maps_of(pid)
        self.resident = [resident_kb(one) for one in family]
        self.files = [len(os.listdir("/proc/%d/fd" % one)) for one in family]
        self.map_bytes = sum(int(about["memlock"]) for about in maps.values())
        self.ended = ended(bpftool, maps)

    def __repr__(self):
        return repr(vars(self))


def test_services_come_and_go(any_python, target, agent, report, store, require):
    """Memory, files and what is in the kernel stay what they are, and no sample is lost or made up."""
    bpftool = require("bpftool")
    server, pages, measures = Backend("otlp"), Site(free_port()), []
    run = agent("--window", "1s", "-r", str(RATE), "--listen", pages.address, "--comm", "services.py",
                "--push", server.url())
    wait_for(lambda: pages.status_of("healthz") == 200)
    crowd = target(any_python, "services.py", SERVICES, AT_ONCE)
    begun = time.monotonic()
    while time.monotonic() < begun + SECONDS:
        measures.append(Measure(bpftool, run.pid))
        pages.get("flamegraph")
        time.sleep(SECONDS / 60)
    crowd.go()
    said = json.loads(crowd.process.stdout.readline().decode("ascii"))
    time.sleep(1.5)
    metrics = pages.metrics()
    end(run)
    server.end()
    assert run.status == 0, run.stderr

    assert said["started"] > SERVICES
    early, late = measures[len(measures) // 3:len(measures) // 2], measures[-len(measures) // 6:]
    for index in range(3):
        assert (max(one.resident[index] for one in late)
                < max(one.resident[index] for one in early) + GROWTH_KB), measures
        assert (max(one.files[index] for one in late)
                <= max(one.files[index] for one in early) + FILES_MORE), measures
    assert len({one.map_bytes for one in measures}) == 1, measures
    # Once at least it has had the time to be told.
    assert min(one.ended for one in late) < ENDED_MAX, measures

    windows = store.check()
    assert len(windows) >= 0.5 * SECONDS
    events = sum(row[0] for row in windows.values())
    told = metrics["pybpfprof_events_total"][""]
    assert told <= events <= told + 10 * RATE * os.cpu_count()
    samples = sum(row[1] for row in windows.values())
    rows = report()
    assert total(rows) == samples == total(server.rows())
    own = [row for row in rows if row[0].startswith("service-%d-" % crowd.pid)]
    assert len({row[0] for row in own}) == SERVICES
    assert 0.6 * said["cpu_s"] < total(own) / RATE < 1.3 * said["cpu_s"]
    order = store.select("SELECT start_ns, end_ns FROM windows ORDER BY id")
    assert all(start < stop for start, stop in order)
    assert all(stop <= start for (_, stop), (start, _) in zip(order, order[1:]))
