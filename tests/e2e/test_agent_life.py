# SPDX-License-Identifier: BSD-2-Clause
"""An agent over a long time, with windows of a second and hundreds of services that start and end."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from agents import end, total
from conftest import children_of, descriptors, wait_for
from push_servers import Backend
from test_agent_http import LISTEN, Site, stored, told

SECONDS = int(os.environ.get("LIFE_SECONDS", "60"))
SERVICES = 200
AT_ONCE = 16
RATE = 99

# Growth allowed between the first third, when every service has run, and the end: for random effects of the
# machine's other processes, and per second, which is 1 MiB per hour.
CHANCE_KB = 2048
GROWTH_KB_A_SECOND = 0.3
FILES_MORE = 24

# The maps that grow, and where their keys have the PID or thread ID.  None: the keys are files or serial numbers.
GROWING = {"targets": slice(0, 4), "told_states": slice(8, 12), "waits": slice(0, 4), "gil_waits": slice(0, 4),
           "known_files": None, "unwind_tables": None}

pytestmark = [pytest.mark.alone, pytest.mark.prove("life"), pytest.mark.timeout(2 * SECONDS + 300)]


def resident_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s*(\d+) kB", status.read()).group(1))


def maps_of(pid):
    """{map ID: the map's fdinfo} of the BPF maps of PID."""
    return {int(about["map_id"]): about for about in descriptors(pid) if "map_id" in about}


def keys_of(bpftool, maps):
    """{name: its keys} of each map that grows."""
    found = {}
    for number in maps:
        about = json.loads(subprocess.check_output(
            [bpftool, "--json", "map", "show", "id", str(number)]))
        if "hash" in about["type"]:
            dumped = json.loads(subprocess.check_output(
                [bpftool, "--json", "map", "dump", "id", str(number)]))
            found[about["name"]] = [bytes(int(byte, 16) for byte in one["key"]) for one in dumped]
    assert set(found) == set(GROWING) and found["targets"]
    return found


def ended(keys):
    """{(map, key)} of entries in BPF maps for processes that have ended."""
    return {(name, key) for name, place in GROWING.items() if place for key in keys[name]
            if not os.path.exists("/proc/%d" % int.from_bytes(key[place], sys.byteorder))}


class Measure:
    """The current resource usage of an agent and of its push processes."""

    def __init__(self, bpftool, pid):
        family = [pid, *children_of(pid)]
        family += children_of(family[1])
        assert len(family) == 3
        maps = maps_of(pid)
        self.resident = [resident_kb(one) for one in family]
        self.files = [len(os.listdir("/proc/%d/fd" % one)) for one in family]
        self.map_bytes = sum(int(about["memlock"]) for about in maps.values())
        keys = keys_of(bpftool, maps)
        self.entries = {name: len(keys[name]) for name in keys}
        self.ended = ended(keys)
        self.time = time.monotonic()

    def __repr__(self):
        return repr(vars(self))


def check_growth(early, late, measured):
    """No resource has grown between EARLY and LATE by more than is allowed."""
    allowed_kb = CHANCE_KB + GROWTH_KB_A_SECOND * (late[-1].time - early[-1].time)
    for index, name in enumerate(("agent", "push process's supervisor", "push process")):
        grown_kb = max(one.resident[index] for one in late) - max(one.resident[index] for one in early)
        measured("memory by which the %s has grown" % name, "%d KiB" % grown_kb, "< %d KiB" % allowed_kb)
    for index in range(3):
        assert (max(one.resident[index] for one in late)
                < max(one.resident[index] for one in early) + allowed_kb), (early, late)
        assert (max(one.files[index] for one in late)
                <= max(one.files[index] for one in early) + FILES_MORE), (early, late)
    assert (max(one.entries["known_files"] for one in late)
            <= max(one.entries["known_files"] for one in early) + FILES_MORE), (early, late)
    assert len({one.map_bytes for one in early + late}) == 1, (early, late)
    assert not any(one.entries["unwind_tables"] for one in early + late)


def test_services_come_and_go(any_python, target, agent, report, store, require, measured):
    """Memory, open files and BPF maps do not grow, and no sample is lost or invented."""
    bpftool = require("bpftool")
    server, measures = Backend("otlp"), []
    run = agent("--window", "1s", "-r", str(RATE), *LISTEN, "--comm", "services.py", "--push", server.url())
    pages = Site(run)
    crowd = target(any_python, "services.py", SERVICES, AT_ONCE)
    begun = time.monotonic()
    while time.monotonic() < begun + SECONDS:
        measures.append(Measure(bpftool, run.pid))
        pages.get("flamegraph")
        time.sleep(SECONDS / 60)
    crowd.go()
    said = json.loads(crowd.process.stdout.readline().decode("ascii"))
    # The BPF maps lose their entries for ended processes.
    left = Measure(bpftool, run.pid).ended
    wait_for(lambda: not left & Measure(bpftool, run.pid).ended)
    # The only targets have ended, so the store catches up with the metrics.
    wait_for(lambda: stored(store) == told(pages))
    events = told(pages)
    end(run)
    server.end()
    assert run.status == 0, run.stderr
    assert stored(store) == events

    assert said["started"] > SERVICES
    check_growth(measures[len(measures) // 3:len(measures) // 2], measures[-len(measures) // 6:], measured)

    windows = store.check()
    assert len(windows) >= 0.5 * SECONDS
    samples = sum(row[1] for row in windows.values())
    rows = report()
    assert total(rows) == samples == total(server.rows())
    own = [row for row in rows if row[0].startswith("service-%d-" % crowd.pid)]
    assert len({row[0] for row in own}) == SERVICES
    ratio = total(own) / RATE / said["cpu_s"]
    measured("sampled CPU time of services, in what they used", "%.2f" % ratio, "0.6 to 1.3")
    assert 0.6 < ratio < 1.3
    order = store.select("SELECT start_ns, end_ns FROM windows ORDER BY id")
    assert all(start < stop for start, stop in order)
    assert all(stop <= start for (_, stop), (start, _) in zip(order, order[1:]))
