# SPDX-License-Identifier: BSD-2-Clause
"""The examples of deploy/examples, with the very programs that they are for."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from agents import named, own, wait_for
from conftest import PATIENCE, PROGRAMS, ROOT

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
from debian import CACHE  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tests", "backends"))
import build_backends  # noqa: E402
import servers  # noqa: E402

pytestmark = pytest.mark.deployed

EXAMPLES = os.path.join(ROOT, "deploy", "examples")
CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job="pybpfprof"}'


def free_address():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return "127.0.0.1:%d" % free.getsockname()[1]


@pytest.fixture
def agent(profile, any_python, target, tmp_path):
    """Where one is listening that has something to tell."""
    target(any_python, "busy.py")
    address = free_address()
    run = profile.start("agent", "--store", tmp_path / "store", "--listen", address, files=False)
    run.wait_sampling()
    yield address
    run.process.send_signal(signal.SIGTERM)
    assert run.finish().status == 0, run.stderr


@pytest.fixture
def parca(agent, tmp_path):
    """A Parca with the example's configuration, but for the address and the times."""
    path = os.pathsep.join(os.path.join(CACHE, "backends", name) for name in ("parca", "bin"))
    program = shutil.which("parca", path=os.environ["PATH"] + os.pathsep + path)
    if not program:
        pytest.skip("no parca here")
    with open(os.path.join(EXAMPLES, "parca.yaml"), encoding="utf-8") as file:
        text = file.read()
    for old, new in (("127.0.0.1:7117", agent), (": 30s", ": 3s"), ("seconds: 30", "seconds: 3"),
                     (": 60s", ": 20s")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "parca.yaml").write_text(text)
    address = free_address()
    process = subprocess.Popen([program, "--config-path=parca.yaml", "--http-address=" + address,
                                "--debuginfod-upstream-servers="], cwd=tmp_path,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield address
    process.kill()
    process.wait()


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
    with open(os.path.join(EXAMPLES, "pyroscope.yaml"), encoding="utf-8") as file:
        text = file.read()
    for old, new in (("127.0.0.1:4040", pyroscope[0]),
                     ("store: /var/lib/pybpfprof", "store: %s/store" % tmp_path)):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (tmp_path / "pyroscope.yaml").write_text(text)
    run = profile.start("agent", "--config", tmp_path / "pyroscope.yaml", "--window", "1s",
                        "--listen", "off", files=False)
    run.wait_sampling()
    wait_for(lambda: pyroscope[1].stacks(own("web"), "samples:count"))
    run.process.send_signal(signal.SIGTERM)
    assert run.finish().status == 0, run.stderr


def test_alloy():
    """There is none here that could run it: that it fits together, and the agent's URL to it."""
    with open(os.path.join(EXAMPLES, "alloy.alloy"), encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line]
    code = "\n".join(line for line in lines if not line.startswith("//"))
    assert code.count("{") == code.count("}") and code.count('"') % 2 == 0
    component, name = re.search(r"forward_to = \[([\w.]+)\.(\w+)\.receiver\]", code).groups()
    assert re.search(r'^%s "%s" \{$' % (re.escape(component), name), code, re.MULTILINE)
    address = "%s:%s" % (re.search('listen_address = "(.*)"', code)[1],
                         re.search(r"listen_port += (\d+)", code)[1])
    assert "//   pybpfprof agent --push pyroscope+http://" + address in lines


def top(address):
    """Parca's functions of the last hour: {(name, file)}."""
    moment = "%Y-%m-%dT%H:%M:%SZ"
    now = time.time()
    query = {"mode": "MODE_MERGE", "merge.query": CPU, "report_type": "REPORT_TYPE_TOP",
             "merge.start": time.strftime(moment, time.gmtime(now - 3600)),
             "merge.end": time.strftime(moment, time.gmtime(now + 60))}
    try:
        with urllib.request.urlopen("http://%s/api/profiles/query?%s" % (
                address, urllib.parse.urlencode(query)), timeout=30) as answer:
            # What it does not have is answered by a page.
            if "json" not in answer.headers["Content-Type"]:
                return set()
            found = json.load(answer)["top"]["list"]
    except urllib.error.URLError:
        return set()
    functions = [each["meta"]["function"] or {} for each in found]
    return {(each.get("name"), each.get("filename")) for each in functions}


def test_parca(parca):
    deadline = time.monotonic() + PATIENCE
    wanted = ("leaf", os.path.join(PROGRAMS, "busy.py"))
    while wanted not in top(parca):
        assert time.monotonic() < deadline, top(parca)
        time.sleep(0.5)
