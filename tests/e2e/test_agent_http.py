# SPDX-License-Identifier: BSD-2-Clause
"""What the agent tells over HTTP, to those who ask well, and to those who do not."""

import contextlib
import http.client
import itertools
import json
import os
import re
import select
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

from agents import end, named, own, total
from conftest import wait_for
from page.pages import browser  # noqa: F401 (fixture)

pytestmark = pytest.mark.timed

METRIC = re.compile(r'([a-z_:]+)(?:\{((?:[a-z_]+="[^"\\]*",?)+)\})? (\S+)')


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Site:
    """An agent's pages."""

    def __init__(self, port):
        self.port = port
        self.address = "127.0.0.1:%d" % port

    def open(self, path, timeout=30, **options):
        request = urllib.request.Request("http://%s/%s" % (self.address, path), **options)
        return urllib.request.urlopen(request, timeout=timeout)

    def get(self, path, **options):
        with self.open(path, **options) as answer:
            return answer.read()

    def status_of(self, path, **options):
        """0: no answer."""
        try:
            with self.open(path, **options) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def metrics(self):
        """{name: {labels: value}}, each of a name with its help and type."""
        found, described = {}, {"HELP": set(), "TYPE": set()}
        for line in self.get("metrics").decode("ascii").splitlines():
            if line.startswith("# "):
                _, kind, name, _ = line.split(" ", 3)
                assert name not in described[kind]
                described[kind].add(name)
                continue
            name, labels, value = METRIC.fullmatch(line).groups()
            assert name in described["HELP"] and name in described["TYPE"]
            assert (labels or "") not in found.setdefault(name, {})
            found[name][labels or ""] = float(value)
        return found


@pytest.fixture
def site(agent):
    """site(ARGUMENT...): the pages of a started agent, which is site.run."""
    def start(*arguments):
        found = Site(free_port())
        found.run = agent("--listen", found.address, *arguments)
        wait_for(lambda: found.status_of("healthz") == 200)
        return found
    return start


def pprof_totals(require, path, tmp_path):
    """The functions of a pprof file, and how many samples it has, as `go tool pprof` reads it."""
    text = subprocess.check_output(
        [require("go"), "tool", "pprof", "-top", "-sample_index=samples", str(path)],
        env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), stderr=subprocess.DEVNULL).decode("utf-8")
    return text, int(re.search(r"Total samples = (\d+)", text).group(1))


def test_nothing_but_to_be_asked(any_python, target, profile, require, tmp_path):
    """It takes neither store nor backend."""
    target(any_python, "busy.py", environment=named("web"))
    pages = Site(free_port())
    pages.run = profile.start("agent", "--listen", pages.address, "--window", "0.5s", "-r", "199", files=False)
    wait_for(lambda: pages.status_of("readyz") == 200)
    path = tmp_path / "web.pb.gz"
    path.write_bytes(pages.get("debug/pprof/profile?seconds=2&service=" + own("web")))
    assert pprof_totals(require, path, tmp_path)[1] > 10
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


def test_health(site):
    pages = site()
    assert pages.get("healthz") == b"ok\n" and pages.get("readyz") == b"ok\n"
    assert pages.status_of("nothing") == 404
    assert pages.status_of("healthz", method="HEAD") == 200
    assert pages.status_of("healthz", data=b"x" * 100000) == 405
    # A page of the web whose name leads here.
    assert pages.status_of("healthz", headers={"Host": "evil.example"}) == 403
    assert pages.status_of("healthz", headers={"Host": "localhost:1"}) == 200
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


def test_metrics(any_python, target, site, store):
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "0.5s", "-r", "199")
    wait_for(lambda: len(store.windows()) > 2)
    metrics = pages.metrics()
    outcomes = metrics["pybpfprof_samples_total"]
    events, lost = (metrics["pybpfprof_" + name][""]
                    for name in ("events_total", "samples_lost_total"))
    assert sum(outcomes.values()) + lost == events > 0
    assert outcomes['outcome="python"'] > 0 and 'outcome="frame_fault"' in outcomes
    assert metrics["pybpfprof_rate_hertz"] == {"": 199}
    version = ".".join(map(str, any_python.version))
    assert metrics["pybpfprof_targets"]['python_version="%s",state="sampled"' % version] >= 1
    assert metrics["pybpfprof_sink_windows_total"]['sink="store",result="lost"'] == 0
    assert metrics["process_resident_memory_bytes"][""] > 1 << 20
    assert 0 < metrics["process_cpu_seconds_total"][""] < 60
    assert abs(metrics["process_start_time_seconds"][""] - time.time()) < 600
    later = pages.metrics()
    assert later["pybpfprof_events_total"][""] >= events
    end(pages.run)
    stored = sum(row[0] for row in store.check().values())
    assert stored >= later["pybpfprof_events_total"][""]


def test_cpu_budget(any_python, target, site, store, report):
    """Kept by a lower rate, which each window has, and nothing is lost.

    That of all, where none is busier than the others: test_agent_rates.py.
    """
    for name in "first", "second", "third":
        target(any_python, "busy.py", environment=named(name))
    ours = json.dumps({"source_labels": ["service_name"], "regex": own("(first|second|third)"),
                       "action": "keep"})
    pages = site("--window", "1s", "-r", "400", "--cpu-budget", "0.01%", "--relabel", ours)
    wait_for(lambda: pages.metrics()["pybpfprof_rate_hertz"][""] <= 100)
    metrics = pages.metrics()
    assert metrics["pybpfprof_rate_configured_hertz"][""] == 400
    assert metrics["pybpfprof_rate_lowered_total"]['limit="cpu",of="all"'] >= 2
    assert metrics["pybpfprof_cpu_used_ratio"][""] > metrics["pybpfprof_cpu_budget_ratio"][""]
    time.sleep(1.5)
    end(pages.run)
    assert pages.run.status == 0
    assert "rate lowered from 400 to 200 Hz: the agent took" in pages.run.stderr
    rates = store.rates()
    assert rates == sorted(rates, reverse=True) and {400, 200, 100} <= set(rates)
    store.check()
    # A sample at a lower rate counts for as many as it stands for.
    assert total(report()) == sum(
        samples * 400 / rate for samples, rate in store.select("SELECT samples, rate_hz FROM windows"))
    # One CPU at least is busy all the time, whatever the rate.
    for rate in 400, 200, 100:
        seconds, samples = store.select("SELECT sum(end_ns - start_ns) / 1e9, sum(samples)"
                                        " FROM windows WHERE rate_hz = %d" % rate)[0]
        assert 0.1 * seconds < samples / rate < 1.3 * os.cpu_count() * seconds + 0.3


def test_memory_limit(any_python, target, site, store):
    """Where there is too little, what is not needed is given back, and no sample with it."""
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "1s", "-r", "40", "--memory-limit", "1M", "-v")
    wait_for(lambda: any(count for labels, count in pages.metrics()["pybpfprof_rate_lowered_total"].items()
                         if 'limit="memory"' in labels))
    wait_for(lambda: pages.metrics()["pybpfprof_budget_unkept"][""])
    assert b"</html>" in pages.get("flamegraph")
    events = pages.metrics()["pybpfprof_events_total"][""]
    end(pages.run)
    assert "(--memory-limit)" in pages.run.stderr
    assert pages.run.stderr.count("no rate can be lowered any more, and the agent takes") == 1
    assert pages.run.stderr.count("compacted to") >= 2
    assert sum(row[0] for row in store.check().values()) >= events > 0


def test_profile(any_python, target, site, require, tmp_path):
    """Of the time that is asked for, over the ends of windows, and of one service."""
    program = target(any_python, "busy.py", environment=named("web"))
    target(any_python, "busy.py", environment=named("api"))
    pages = site("--window", "0.4s", "-r", "499")
    before = program.cpu_seconds()
    path = tmp_path / "web.pb.gz"
    path.write_bytes(pages.get("debug/pprof/profile?seconds=2.5&service=" + own("web")))
    used = program.cpu_seconds() - before
    text, samples = pprof_totals(require, path, tmp_path)
    assert "spin" in text
    # What the program used meanwhile, which may be more than the time that is asked for.
    assert 0.3 * used * 499 < samples < 1.3 * used * 499 + 50
    for everything in "", "&service=":
        path.write_bytes(pages.get("debug/pprof/profile?seconds=0.5" + everything))
        assert pprof_totals(require, path, tmp_path)[1] > 0
    graph = pages.get("flamegraph?service=")
    assert b"every Python on" in graph and b"spin" in graph
    for seconds in "0", "-1", "301", "x", "nan", "1e9":
        assert pages.status_of("debug/pprof/profile?seconds=" + seconds) == 400
    end(pages.run)


def test_too_many_profiles(site):
    pages = site()
    answers = []

    def ask():
        answers.append(pages.status_of("debug/pprof/profile?seconds=6"))

    asking = [threading.Thread(target=ask) for _ in range(10)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert sorted(answers) == [200] * 8 + [503] * 2
    end(pages.run)


def test_long_profiles_give_way_to_shorter_ones(site):
    """Else who asks for the longest ones has everybody else wait for them."""
    pages = site()
    with contextlib.ExitStack() as stack:
        asking = [stack.enter_context(socket.create_connection(("127.0.0.1", pages.port)))
                  for _ in range(8)]
        for client in asking:
            client.sendall(b"GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answered = []

        def is_full():
            assert pages.status_of("debug/pprof/profile?seconds=0.5") == 200
            answered.extend(select.select(asking, [], [], 0)[0])
            return answered

        wait_for(is_full)
        answer = answered[0].recv(1000)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in answer
        assert pages.status_of("debug/pprof/profile?seconds=1") == 200
    end(pages.run)


def test_it_ends_while_a_profile_is_waited_for(site):
    pages = site()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(
        pages.status_of("debug/pprof/profile?seconds=60")))
    asking.start()
    time.sleep(2)
    started = time.monotonic()
    end(pages.run)
    asking.join()
    assert time.monotonic() - started < 30
    assert pages.run.status == 0 and answers == [503]


def test_slow_clients_delay_nothing(any_python, target, site, store):
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "0.2s")
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", pages.port)))
            client.sendall(b"GET /flamegraph HTTP/1.1\r\nHost: local")
        before = len(store.windows())
        for _ in range(10):
            started = time.monotonic()
            assert pages.get("healthz") == b"ok\n"
            # Less than what one of the others may take.
            assert time.monotonic() - started < 10
        wait_for(lambda: len(store.windows()) > before + 3)
        # More than there may be: the first ones go, and the agent goes on.
        for _ in range(40):
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_connection(("127.0.0.1", pages.port), 1))
        before = len(store.windows())
        wait_for(lambda: len(store.windows()) > before + 3)
    wait_for(lambda: pages.status_of("healthz") == 200)
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


# Of one: a request that does not end, or answers, of some megabytes together, that nobody reads.
SLOW_REQUESTS = {"asking": b"GET /",
                 "taking": b"GET /flamegraph HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300}


@pytest.mark.parametrize("slow", SLOW_REQUESTS)
def test_slow_clients_keep_nobody_out(slow, site):
    """More than may be connected, from several addresses, each with a byte now and then."""
    pages = site()
    with contextlib.ExitStack() as stack:
        def connect(number):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.bind(("127.0.0.%d" % (2 + number % 16), 0))
            client.settimeout(30)
            client.connect(("127.0.0.1", pages.port))
            client.sendall(SLOW_REQUESTS[slow])
            if slow == "taking":
                assert client.recv(1)
            client.setblocking(False)
            return client

        clients = [connect(number) for number in range(80)]
        for _ in range(5):
            # As the kubelet waits for it.
            assert pages.get("healthz", timeout=5) == b"ok\n"
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(b"x")
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("path", ["flamegraph", "flamegraph?service=%d", "status", "metrics", "healthz"])
def test_who_asks_much_costs_little(path, site):
    pages = site()
    codes = []
    client = http.client.HTTPConnection("127.0.0.1", pages.port, timeout=30)
    before, started = cpu_seconds(pages.run.pid), time.monotonic()
    while time.monotonic() - started < 6:
        client.request("GET", "/" + path.replace("%d", str(len(codes))))
        answer = client.getresponse()
        answer.read()
        codes.append(answer.status)
        client.close()
    used = cpu_seconds(pages.run.pid) - before
    # A percent of a CPU, what was saved up for it, and what the agent does besides; else it is more than a third.
    assert used < 0.15 * (time.monotonic() - started)
    assert codes[0] == 200 and set(codes) <= {200, 503}
    end(pages.run)


def test_what_cannot_be_made_is_put_off(site):
    """What was made is still shown, and probes have their answer."""
    pages = site()
    shown = pages.get("metrics")
    wait_for(lambda: pages.get("metrics") == pages.get("metrics") != shown)

    def refusal(number=itertools.count()):
        try:
            pages.get("flamegraph?service=%d" % next(number))
        except urllib.error.HTTPError as error:
            return error
        return None

    refused = []
    wait_for(lambda: refused.append(refusal()) or refused[-1])
    assert refused[-1].code == 503 and 1 <= int(refused[-1].headers["Retry-After"]) <= 60
    assert pages.get("healthz") == b"ok\n" and pages.metrics()["pybpfprof_http_cpu_seconds_total"][""] > 0
    end(pages.run)


def test_a_request_has_so_long_to_be_complete(site):
    """In all: each byte of it is not one more beginning."""
    pages = site()
    with socket.create_connection(("127.0.0.1", pages.port)) as client:
        client.sendall(b"GET /")
        client.settimeout(1)
        deadline = time.monotonic() + 120
        answer = None
        while answer is None:
            assert time.monotonic() < deadline
            with contextlib.suppress(ConnectionError, TimeoutError):
                client.sendall(b"x")
                answer = client.recv(1)
        assert answer == b""
    end(pages.run)


@pytest.mark.parametrize("request_bytes", [
    b"\0" * 1000, b"GET " + b"x" * 100000, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 10000,
    b"GET /\xff?service=\xff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ids=["zeros", "long line", "many headers", "no text"])
def test_nonsense(request_bytes, site):
    pages = site()
    with socket.create_connection(("127.0.0.1", pages.port)) as client:
        with contextlib.suppress(OSError):
            client.sendall(request_bytes)
            client.shutdown(socket.SHUT_WR)
            client.settimeout(20)
            client.recv(1000)
    assert pages.get("healthz") == b"ok\n"
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


def test_status(any_python, target, site):
    program = target(any_python, "busy.py", environment=named("</script><b>"))
    pages = site("--node", "here")
    wait_for(lambda: program.pid in [row["pid"] for row in json.loads(pages.get("status"))["targets"]])
    status = json.loads(pages.get("status"))
    assert status["node"] == "here" and status["rate_hz"] == 19
    found = [row for row in status["targets"] if row["pid"] == program.pid]
    assert [row["service"] for row in found] == [own("</script><b>")]
    assert found[0]["state"] == "sampled"
    end(pages.run)


def test_page(any_python, target, site, browser):
    """In a browser: the processes, and the flame graph of a service."""
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "0.5s", "-r", "499")
    time.sleep(1)
    browser.open("http://%s/" % pages.address)
    wait_for(lambda: own("web") in browser.run(
        "return document.getElementById('targets').textContent"))
    browser.run("""const service = document.getElementById("service");
        service.value = arguments[0];
        service.dispatchEvent(new Event("change"));""", own("web"))
    graph = "return document.getElementById('graph').contentDocument?.title ?? ''"
    wait_for(lambda: own("web") in browser.run(graph))
    browser.run("document.getElementById('live').click()")
    end(pages.run)
    wait_for(lambda: "does not answer" in browser.run(
        "return document.getElementById('summary').textContent"))


def test_an_address_that_is_taken(agent, profile, store):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        run = profile.attempt("agent", "--store", store.folder, "--listen", address)
    assert run.status == 1 and "cannot listen on " + address in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_the_default_address_that_is_taken(agent, profile, store):
    """It is an error only where somebody names it."""
    address = "127.0.0.1", 7117

    def take(listener):
        with contextlib.suppress(OSError):
            listener.bind(address)
            listener.listen()
        return listener.getsockname() == address

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Another test's agent may have it.
        wait_for(lambda: take(listener))
        run = profile.attempt("agent", "--store", store.folder, "--listen", "127.0.0.1:7117")
        assert run.status == 1 and "cannot listen on 127.0.0.1:7117" in run.stderr
        run = end(agent())
    assert run.status == 0 and "nothing is told by HTTP" in run.stderr


@pytest.mark.parametrize("address", ["x", "127.0.0.1", "localhost:80", "127.0.0.1:70000", "[::1]"])
def test_what_is_no_address(address, profile, store):
    run = profile.attempt("agent", "--store", store.folder, "--listen", address)
    assert run.status == 1 and "'%s' is not ADDRESS:PORT" % address in run.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_it_says_which_port_it_has(host, agent):
    run = agent("--listen", host + ":0")
    address = re.search(r"telling by HTTP at http://(.*)/$", run.said(), re.MULTILINE).group(1)
    assert address.startswith(host + ":")
    with urllib.request.urlopen("http://%s/healthz" % address, timeout=30) as answer:
        assert answer.read() == b"ok\n"
    end(run)


def test_others_may_reach_it(agent):
    port = free_port()
    run = agent("--listen", "0.0.0.0:%d" % port)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/healthz", headers={"Host": "node.example"})
    assert connection.getresponse().status == 200
    connection.close()
    end(run)
    assert "nobody is asked who he is" in run.stderr


def test_off(agent):
    run = agent("--listen", "off")
    listening = subprocess.check_output(["ss", "-Hltnp"]).decode()
    assert "pid=%d," % run.pid not in listening
    end(run)
    assert run.status == 0
