# SPDX-License-Identifier: BSD-2-Clause
"""The examples of deploy/examples, with the very programs that they are for."""

import os
import re
import shutil
import signal
import sys

import pytest

from agents import end, named, own, wait_for
from conftest import PROGRAMS, ROOT
from scrapes import asking, lived_inside
from test_agent_http import site  # noqa: F401 (fixture)
from test_push import summed

sys.path.insert(0, os.path.join(ROOT, "tests", "backends"))
import build_backends  # noqa: E402
import servers  # noqa: E402

pytestmark = pytest.mark.deployed

EXAMPLES = os.path.join(ROOT, "deploy", "examples")
CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job="pybpfprof"}'
PARCA_S = 10
RATE = 499


def example(name, *changes):
    """The text of one, but for CHANGES: what it has once, and what is in its place."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        text = file.read()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.fixture
def parca(tmp_path):
    """parca(ADDRESS): one with the example's configuration, but for the agent's address and the times."""
    if not build_backends.is_there("parca"):
        pytest.skip("no parca here: make test-backends builds it")
    running = []

    def start(address):
        folder = tmp_path / "parca"
        folder.mkdir()
        config = example("parca.yaml", ("127.0.0.1:7117", address), (": 30s", ": %ds" % PARCA_S),
                         ("seconds: 30", "seconds: %d" % PARCA_S), (": 60s", ": %ds" % (3 * PARCA_S)))
        running.append(servers.Server("parca", folder, parca_config=config))
        return running[-1]
    yield start
    for one in running:
        one.end()


@pytest.fixture
def pyroscope(tmp_path):
    """Its address, and its servers.Server."""
    if not build_backends.is_there("pyroscope"):
        pytest.skip("no pyroscope here: make test-backends builds it")
    server = servers.Server("pyroscope", tmp_path)
    yield "127.0.0.1:%d" % server.port, server
    server.end()


def test_pyroscope(pyroscope, profile, any_python, target, tmp_path):
    """The agent as the example has it, but for the addresses."""
    target(any_python, "busy.py", environment=named("web"))
    (tmp_path / "pyroscope.yaml").write_text(
        example("pyroscope.yaml", ("127.0.0.1:4040", pyroscope[0]),
                ("store: /var/lib/pybpfprof", "store: %s/store" % tmp_path)))
    run = profile.start("agent", "--config", tmp_path / "pyroscope.yaml", "--window", "1s",
                        "--listen", "off", files=False)
    run.wait_sampling()
    wait_for(lambda: pyroscope[1].stacks(own("web"), "samples:count"))
    run.process.send_signal(signal.SIGTERM)
    assert run.finish().status == 0, run.stderr


def test_alloy():
    """There is none here that could run it: that it fits together, and the agent's URL to it."""
    lines = [line for line in example("alloy.alloy").splitlines() if line]
    code = "\n".join(line for line in lines if not line.startswith("//"))
    assert code.count("{") == code.count("}") and code.count('"') % 2 == 0
    component, name = re.search(r"forward_to = \[([\w.]+)\.(\w+)\.receiver\]", code).groups()
    assert re.search(r'^%s "%s" \{$' % (re.escape(component), name), code, re.MULTILINE)
    address = "%s:%s" % (re.search('listen_address = "(.*)"', code)[1],
                         re.search(r"listen_port += (\d+)", code)[1])
    assert "//   pybpfprof agent --push pyroscope+http://" + address in lines


def test_parca(parca, any_python, target, site, store, report, tmp_path):  # noqa: F811
    """What it fetched of a program that lived within one of its profiles, to the last sample."""
    pages = site("-r", str(RATE), "--window", "0.5s")
    server, asked = parca(pages.address), []

    def path_of(attempt):
        return str(tmp_path / ("%d" % attempt) / "busy.py")

    def ask(attempt):
        before = asking(pages.port)
        wait_for(lambda: asking(pages.port) - before)
        asked[:] = asking(pages.port) - before
        assert pages.status_of("healthz") == 200
        os.mkdir(os.path.dirname(path_of(attempt)))
        shutil.copy(os.path.join(PROGRAMS, "busy.py"), path_of(attempt))
        return [target(any_python, path_of(attempt), environment=named("web"))]

    def of_attempt(stacks):
        # What came before its first line is told by other files.
        return {frames: value for frames, value in (stacks or {}).items()
                if any("(%s:" % path_of(attempt) in frame for frame in frames)}
    attempt = lived_inside(ask, lambda: asking(pages.port) >= set(asked), store)
    wait_for(lambda: of_attempt(server.parca_stacks(CPU)))
    found = of_attempt(server.parca_stacks(CPU))
    end(pages.run)
    sums = summed(report("--full-filenames", "--label", "service_name=" + own("web")))
    wanted = of_attempt({frames: count * round(1e9 / RATE) for (_, frames), count in sums.items()})
    assert len(wanted) > 1 and sum(wanted.values()) > 100 * round(1e9 / RATE)
    assert found == wanted
