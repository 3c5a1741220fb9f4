# SPDX-License-Identifier: BSD-2-Clause
"""The examples in deploy/examples, with the real programs."""

import os
import re
import shutil
import signal
import sys

import pytest

from agents import end, named, own
from conftest import PROGRAMS, ROOT, wait_for
from scrapes import asking, lived_inside
from test_agent_http import site  # noqa: F401 (fixture)
from test_push import summed

sys.path.insert(0, os.path.join(ROOT, "tests", "backends"))
import build_backends  # noqa: E402
import servers  # noqa: E402

pytestmark = pytest.mark.prove("deploy")

EXAMPLES = os.path.join(ROOT, "deploy", "examples")
CPU = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{job="pybpfprof"}'
PARCA_S = 10
RATE = 499


def example(name, *changes):
    """The text of an example after CHANGES, pairs of a text that occurs once and its replacement."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        text = file.read()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.fixture
def parca(tmp_path):
    """parca(ADDRESS): a server with the example's configuration, except for the agent's address and the times."""
    if not build_backends.is_there("parca"):
        pytest.skip("no parca here: make prove PARTS=deploy builds it")
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
    """The server's address and its servers.Server."""
    if not build_backends.is_there("pyroscope"):
        pytest.skip("no pyroscope here: make prove PARTS=deploy builds it")
    server = servers.Server("pyroscope", tmp_path)
    yield "127.0.0.1:%d" % server.port, server
    server.end()


def test_pyroscope(pyroscope, profile, any_python, target, tmp_path):
    """The agent runs with the example's configuration, except for the addresses and the store."""
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


# The part of Alloy's syntax that the example may use: blocks with or without a label; arguments that are a
# string, a number or a list of references.
ALLOY_TOKEN = re.compile(r'\s*(?:(?P<text>"[^"\\\n]*")|(?P<number>\d+)|(?P<name>[a-z_]\w*(?:\.[a-z_]\w*)*)'
                         r'|(?P<mark>[{}\[\]=,]))')

# The blocks that the example uses, from Alloy's reference, each with its arguments, their types and blocks.
ALLOY = {
    "pyroscope.receive_http": {"forward_to": list, "http": {"listen_address": str, "listen_port": int}},
    "pyroscope.write": {"endpoint": {"url": str}}}
ALLOY_REQUIRED = {"pyroscope.receive_http": {"forward_to"}, "endpoint": {"url"}}


def alloy_tokens(text):
    """[(kind, token, line)]"""
    code = "\n".join("" if line.startswith("//") else line for line in text.splitlines()).rstrip()
    tokens, at = [], 0
    while at < len(code):
        match = ALLOY_TOKEN.match(code, at)
        assert match, code[at:at + 40]
        at = match.end()
        tokens.append((match.lastgroup, match[match.lastgroup], code.count("\n", 0, at)))
    return tokens


def read_alloy_value(tokens):
    kind, token, _ = tokens.pop(0)
    if kind == "text":
        return token[1:-1]
    if kind == "number":
        return int(token)
    assert token == "[", token
    found = []
    while tokens[0][1] != "]":
        kind, token, _ = tokens.pop(0)
        assert kind == "name" and tokens[0][1] in (",", "]"), token
        found.append(token)
        if tokens[0][1] == ",":
            tokens.pop(0)
    tokens.pop(0)
    return found


def read_alloy(tokens, allowed, closing=()):
    """{name: value} of arguments and {(name, label): body} of blocks, up to CLOSING.  Each must start on its
    own line and be in ALLOWED."""
    found, line = {}, -1
    while tokens and tokens[0][1] not in closing:
        kind, name, begins = tokens.pop(0)
        assert kind == "name" and name in allowed and begins > line, name
        wanted, label = allowed[name], ""
        if isinstance(wanted, dict):
            # Components have labels; the blocks inside them do not.
            if allowed is ALLOY:
                kind, label, _ = tokens.pop(0)
                assert kind == "text" and re.fullmatch(r'"[a-z_]\w*"', label), label
            assert tokens.pop(0)[1:] == ("{", begins), name
            value = read_alloy(tokens, wanted, ("}",))
            assert {key[0] if isinstance(key, tuple) else key for key in value} >= ALLOY_REQUIRED.get(
                name, set()), name
            key, line = (name, label.strip('"')), tokens.pop(0)[2]
        else:
            assert tokens.pop(0)[1] == "=", name
            key, value, line = name, read_alloy_value(tokens), begins
            assert isinstance(value, wanted), name
        assert key not in found, key
        found[key] = value
    return found


def test_alloy():
    """No such server runs here.  Check that the file matches the reference and has the agent's URL."""
    text = example("alloy.alloy")
    components = read_alloy(alloy_tokens(text), ALLOY)
    (_, receiver), (_, writer) = components
    receiving = components["pyroscope.receive_http", receiver]
    assert receiving["forward_to"] == ["pyroscope.write.%s.receiver" % writer]
    assert components["pyroscope.write", writer]["endpoint", ""]["url"] == "http://127.0.0.1:4040"
    http = receiving["http", ""]
    assert "//   pybpfprof agent --push pyroscope+http://%s:%d" % (
        http["listen_address"], http["listen_port"]) in text.splitlines()


@pytest.mark.parametrize("old,new", [
    ("pyroscope.receive_http", "pyroscope.recieve_http"), ("listen_port ", "listen_prot "),
    ("= 9999", '= "9999'), ("= 9999", "= 9999\n}"), ("endpoint {", "endpoint"), ("url = ", "url "),
    ('write "pyroscope"', "write"), ('write "pyroscope"', 'write "elsewhere"'), ("forward_to", "forwards_to"),
    ("[pyroscope.write.pyroscope.receiver]", '"pyroscope.write.pyroscope.receiver"'),
    ("\thttp {", '\thttp "x" {'), ("\turl = ", "\t// url = "), ("listen_port    = 9999", "listen_port = 9998")])
def test_mistakes_in_the_alloy_file_are_found(old, new, monkeypatch):
    """test_alloy fails on files that Alloy would reject."""
    changed = example("alloy.alloy", (old, new))
    monkeypatch.setattr(sys.modules[__name__], "example", lambda name: changed)
    with pytest.raises((AssertionError, KeyError, ValueError, IndexError)):
        test_alloy()


def test_parca(parca, any_python, target, site, store, report, tmp_path):  # noqa: F811
    """A program runs within one of Parca's profiles.  Parca has all its samples."""
    pages = site("-r", str(RATE), "--window", "0.5s")
    server, asked = parca(pages.address), []

    def path_of(attempt):
        return str(tmp_path / ("%d" % attempt) / "many_stacks.py")

    def ask(attempt):
        before = asking(pages.port)
        wait_for(lambda: asking(pages.port) - before)
        asked[:] = asking(pages.port) - before
        assert pages.status_of("healthz") == 200
        os.mkdir(os.path.dirname(path_of(attempt)))
        shutil.copy(os.path.join(PROGRAMS, "many_stacks.py"), path_of(attempt))
        return [target(any_python, path_of(attempt), 20, environment=named("web"))]

    def of_attempt(stacks):
        # Stacks from before the program's first line have only other files.
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
