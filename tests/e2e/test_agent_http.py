# SPDX-License-Identifier: BSD-2-Clause
"""The agent's HTTP server: its pages and metrics, and its behaviour with slow, busy and invalid clients."""

import collections
import contextlib
import http.client
import itertools
import json
import os
import re
import select
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from agents import end, named, own, services, total
from conftest import PROGRAMS, cpu_seconds, wait_for
from page.pages import Page

# The agent chooses a free port.
LISTEN = ("--listen", "127.0.0.1:0")
# The label of the default event.
CLOCK = 'event="cpu-clock"'
METRIC = re.compile(r'([a-z_:]+)(?:\{((?:[a-z_]+="[^"\\]*",?)+)\})? (\S+)')


class Site:
    """The HTTP pages of an agent.  RUN is its Run."""

    def __init__(self, run):
        self.run = run
        said = wait_for(lambda: re.search(r" at http://(127.0.0.1:(\d+))/$", run.said(), re.MULTILINE))
        self.address, self.port = said[1], int(said[2])
        wait_for(lambda: self.status_of("healthz") == 200)

    def open(self, path, timeout=120, **options):
        request = urllib.request.Request("http://%s/%s" % (self.address, path), **options)
        return urllib.request.urlopen(request, timeout=timeout)

    def get(self, path, **options):
        """The page's content.  Retries while the agent answers Retry-After, as its CPU budget for HTTP is used up."""
        def answer():
            try:
                with self.open(path, **options) as answer:
                    return [answer.read()]
            except urllib.error.HTTPError as error:
                if "Retry-After" in error.headers:
                    return None
                raise

        return wait_for(answer)[0]

    def status_of(self, path, **options):
        """The HTTP status; 0 without an answer."""
        try:
            with self.open(path, **options) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def metrics(self):
        """{name: {labels: value}}.  Checks that each name has HELP and TYPE."""
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


def stored(store):
    """The sums over all windows: events, lost, and samples of each outcome."""
    sums = collections.Counter()
    for events, _, lost, outcomes in store.windows().values():
        sums.update({"events": events, "lost": lost})
        sums.update(json.loads(outcomes))
    return +sums


def told(pages):
    """The same sums as stored(), from the metrics."""
    metrics = pages.metrics()
    sums = collections.Counter({labels.split('"')[3]: int(value) for labels, value
                                in metrics["pybpfprof_samples_total"].items()})
    sums["events"] = int(metrics["pybpfprof_events_total"][CLOCK])
    sums["lost"] = int(metrics["pybpfprof_samples_lost_total"][CLOCK])
    return +sums


@pytest.fixture
def site(agent):
    """site(ARGUMENT...): the Site of a started agent."""
    def start(*arguments):
        return Site(agent(*LISTEN, *arguments))
    return start


def pprof_totals(require, path, tmp_path):
    """The text of `go tool pprof -top` for a pprof file, and its number of samples."""
    text = subprocess.check_output(
        [require("go"), "tool", "pprof", "-top", "-sample_index=samples", str(path)],
        env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)), stderr=subprocess.DEVNULL).decode("utf-8")
    return text, int(re.search(r"Total samples = (\d+)", text).group(1))


def test_http_alone_suffices(any_python, target, profile, require, tmp_path):
    """The agent needs neither a store nor a backend."""
    target(any_python, "busy.py", environment=named("web"))
    pages = Site(profile.start("agent", *LISTEN, "--window", "0.2s", "-r", "199", files=False))
    wait_for(lambda: pages.status_of("readyz") == 200)
    path = tmp_path / "web.pb.gz"

    def samples():
        path.write_bytes(pages.get("debug/pprof/profile?seconds=0.5&service=" + own("web")))
        return pprof_totals(require, path, tmp_path)[1]

    wait_for(samples)
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


@pytest.fixture
def only(tmp_path):
    """The path of a busy program that no other test runs."""
    return shutil.copy(os.path.join(PROGRAMS, "busy.py"), tmp_path / (own("only") + ".py"))


def test_health(site):
    pages = site()
    assert pages.get("healthz") == b"ok\n" and pages.get("readyz") == b"ok\n"
    assert pages.status_of("nothing") == 404
    assert pages.status_of("healthz", method="HEAD") == 200
    assert pages.status_of("healthz", data=b"x" * 100000) == 405
    # DNS rebinding: a website's name that resolves to this address.
    assert pages.status_of("healthz", headers={"Host": "evil.example"}) == 403
    assert pages.status_of("healthz", headers={"Host": "localhost:1"}) == 200
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


def test_metrics(any_python, target, site, store, only):
    program = target(any_python, only, environment=named("web"))
    pages = site("--window", "0.2s", "-r", "199", "--comm", os.path.basename(only))
    wait_for(lambda: pages.metrics().get("pybpfprof_samples_total", {}).get(CLOCK + ',outcome="python"'))
    wait_for(lambda: len(store.windows()) > 2)
    metrics = pages.metrics()
    outcomes = metrics["pybpfprof_samples_total"]
    events, lost = (metrics["pybpfprof_" + name][CLOCK]
                    for name in ("events_total", "samples_lost_total"))
    assert sum(outcomes.values()) + lost == events > 0
    assert outcomes[CLOCK + ',outcome="python"'] > 0 and CLOCK + ',outcome="frame_fault"' in outcomes
    assert metrics["pybpfprof_rate_hertz"] == {"": 199}
    version = ".".join(map(str, any_python.version))
    assert metrics["pybpfprof_targets"]['python_version="%s",state="sampled"' % version] >= 1
    assert metrics["pybpfprof_sink_windows_total"]['sink="store",result="lost"'] == 0
    assert metrics["process_resident_memory_bytes"][""] > 1 << 20
    assert metrics["process_cpu_seconds_total"][""] > 0
    assert abs(metrics["process_start_time_seconds"][""] - time.time()) < 600
    program.end()
    # The only target has ended, so the store catches up with the metrics.
    wait_for(lambda: told(pages)["events"] >= events and told(pages) == stored(store))
    end(pages.run)
    store.check()


def test_cpu_budget(any_python, target, site, store, report):
    """A lower rate keeps the budget.  Each window stores its rate, and no sample is lost.  The rate of the only
    service is lowered, or that of all if it had no recent samples."""
    target(any_python, "busy.py", environment=named("web"))
    ours = json.dumps({"source_labels": ["service_name"], "regex": own("web"), "action": "keep"})
    pages = site("--window", "0.5s", "-r", "400", "--cpu-budget", "0.01%", "--relabel", ours)
    wait_for(lambda: store.windows() and {400, 200} <= {round(1e9 * count / value)
                                                        for _, _, amounts in store.amounts()
                                                        for count, value in amounts})
    metrics = pages.metrics()
    assert metrics["pybpfprof_rate_configured_hertz"][""] == 400
    assert sum(metrics["pybpfprof_rate_lowered_total"].values()) >= 1
    end(pages.run)
    assert pages.run.status == 0
    store.check()
    # Samples at a lower rate are scaled up.
    rows = report()
    expected = sum(value for _, _, amounts in store.amounts() for _, value in amounts) * 400 / 1e9
    # Each row is rounded.
    assert abs(total(rows) - expected) <= len(rows)


@pytest.mark.prove("cost")
@pytest.mark.alone
def test_cpu_budget_of_all(any_python, target, site, store, measured):
    """The rate of all services is lowered if none dominates.  test_agent_rates.py has the other case."""
    for name in "first", "second", "third":
        target(any_python, "busy.py", environment=named(name))
    ours = json.dumps({"source_labels": ["service_name"], "regex": own("(first|second|third)"),
                       "action": "keep"})
    pages = site("--window", "1s", "-r", "400", "--cpu-budget", "0.01%", "--relabel", ours)
    wait_for(lambda: pages.metrics()["pybpfprof_rate_hertz"][""] <= 100)
    metrics = pages.metrics()
    assert metrics["pybpfprof_rate_lowered_total"]['limit="cpu",of="all"'] >= 2
    assert metrics["pybpfprof_cpu_used_ratio"][""] > metrics["pybpfprof_cpu_budget_ratio"][""]
    newest = max(store.windows())
    wait_for(lambda: max(store.windows()) > newest + 2)
    end(pages.run)
    assert "lowered the rate from 400 to 200 Hz: the agent used" in pages.run.stderr
    rates = store.rates()
    assert rates == sorted(rates, reverse=True) and {400, 200, 100} <= set(rates)
    # At any rate, the samples account for the CPU time that the targets used.
    for rate in 400, 200, 100:
        seconds, samples = store.select("SELECT sum(end_ns - start_ns) / 1e9, sum(samples)"
                                        " FROM windows WHERE rate_hz = %d" % rate)[0]
        measured("CPUs that are busy, as sampled at a lowered rate of %d Hz" % rate,
                 "%.2f" % (samples / rate / seconds), "0.1 to %.1f" % (1.3 * os.cpu_count()))
        assert 0.1 * seconds < samples / rate < 1.3 * os.cpu_count() * seconds + 0.3


def test_memory_limit(any_python, target, site, store):
    """With too little memory, the agent frees what it does not need, without losing samples."""
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "0.5s", "-r", "2", "--memory-limit", "1M", "-v")
    wait_for(lambda: any(count for labels, count in pages.metrics()["pybpfprof_rate_lowered_total"].items()
                         if 'limit="memory"' in labels))
    wait_for(lambda: pages.metrics()["pybpfprof_budget_unkept"][""])
    wait_for(lambda: pages.run.said().count("the profile begins anew") >= 2)
    assert b"</html>" in pages.get("flamegraph")
    events = wait_for(lambda: pages.metrics()["pybpfprof_events_total"][CLOCK])
    end(pages.run)
    assert "that --memory-limit allows" in pages.run.stderr
    assert pages.run.stderr.count("all rates are at their minimum, and the agent uses") == 1
    assert sum(row[0] for row in store.check().values()) >= events > 0


def test_profile(any_python, target, site, store, require, tmp_path):
    """A profile spans several windows and has one service or all.  test_scrape.py checks it to the last sample."""
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "0.2s", "-r", "499")
    wait_for(lambda: own("web") in services(store))
    path = tmp_path / "web.pb.gz"

    def has_samples(query):
        path.write_bytes(pages.get("debug/pprof/profile?seconds=0.5" + query))
        text, samples = pprof_totals(require, path, tmp_path)
        return samples and "spin" in text

    for query in "&service=" + own("web"), "", "&service=":
        wait_for(lambda: has_samples(query))
    graph = pages.get("flamegraph?service=")
    assert b"every Python on" in graph and b"spin" in graph
    for seconds in "0", "-1", "301", "x", "nan", "1e9":
        assert pages.status_of("debug/pprof/profile?seconds=" + seconds) == 400
    end(pages.run)


def test_no_more_than_eight_profiles_at_once(site):
    """A shorter request evicts the longest one.  When the agent ends, it answers all open requests with 503."""
    pages = site()
    with contextlib.ExitStack() as stack:
        asking = [stack.enter_context(socket.create_connection(("127.0.0.1", pages.port)))
                  for _ in range(10)]

        def refused(count):
            """Waits until COUNT clients are refused.  Returns how many were."""
            wait_for(lambda: len(select.select(asking, [], [], 0)[0]) >= count)
            answered = select.select(asking, [], [], 0)[0]
            for client in answered:
                answer = client.recv(1000)
                assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in answer
                asking.remove(client)
            return len(answered)

        for client in asking:
            client.sendall(b"GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert refused(2) == 2
        assert pages.status_of("debug/pprof/profile?seconds=0.5") == 200
        assert refused(1) == 1
        end(pages.run)
        assert pages.run.status == 0, pages.run.stderr
        assert all(client.recv(1000).startswith(b"HTTP/1.1 503 ") for client in asking)


def test_slow_clients_delay_nothing(any_python, target, site, store):
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "0.2s")
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", pages.port)))
            client.sendall(b"GET /flamegraph HTTP/1.1\r\nHost: local")
        before = len(store.windows())
        for _ in range(10):
            # Each slow client may take 10 s.
            assert pages.get("healthz", timeout=60) == b"ok\n"
        wait_for(lambda: len(store.windows()) > before + 3)
        # Beyond the limit of connections the oldest are closed, and the agent works on.
        for _ in range(40):
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_connection(("127.0.0.1", pages.port), 1))
        before = len(store.windows())
        wait_for(lambda: len(store.windows()) > before + 3)
    wait_for(lambda: pages.status_of("healthz") == 200)
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


# A slow client sends an incomplete request, or does not read the megabytes of answers to many requests.
SLOW_REQUESTS = {"asking": b"GET /",
                 "taking": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 300}


@pytest.mark.parametrize("slow", SLOW_REQUESTS)
def test_slow_clients_do_not_lock_others_out(slow, site):
    """More clients than the limit, from several addresses, each sending a byte now and then."""
    pages = site()
    with contextlib.ExitStack() as stack:
        def connect(number):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.bind(("127.0.0.%d" % (2 + number % 16), 0))
            client.settimeout(120)
            client.connect(("127.0.0.1", pages.port))
            client.sendall(SLOW_REQUESTS[slow])
            if slow == "taking":
                assert client.recv(1)
            client.setblocking(False)
            return client

        clients = [connect(number) for number in range(40)]
        for _ in range(5):
            # Each slow client may take 10 s or more.
            assert pages.get("healthz", timeout=60) == b"ok\n"
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(b"x")
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr


@pytest.mark.prove("cost")
@pytest.mark.parametrize("path", ["flamegraph", "flamegraph?service=%d", "status", "metrics", "healthz"])
def test_frequent_requests_cost_little(path, site, measured):
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
    # HTTP may use 1 % of a CPU and its saved budget; the rest is other work.  Without a limit it exceeds 33 %.
    share = used / (time.monotonic() - started)
    measured("CPU of an agent that is asked for /%s all the time" % path, "%.1f %%" % (100 * share), "< 15 %")
    assert share < 0.15
    assert codes[0] == 200 and set(codes) <= {200, 503}
    end(pages.run)


def test_requests_over_the_budget_are_refused(site):
    """Probes and Prometheus still get answers.  A page is cached for a second."""
    pages = site()
    shown = pages.get("metrics")
    wait_for(lambda: pages.get("metrics") == pages.get("metrics") != shown)
    numbers = itertools.count()

    def refusals():
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(contextlib.closing(
                http.client.HTTPConnection("127.0.0.1", pages.port, timeout=120))) for _ in range(16)]
            # Send all requests at once: sequential ones would be delayed instead of refused.
            for client in clients:
                client.request("GET", "/flamegraph?service=%d" % next(numbers))
            return [answer for answer in [client.getresponse() for client in clients] if answer.status == 503]

    refused = wait_for(refusals)[0]
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert pages.status_of("healthz") == pages.status_of("metrics") == pages.status_of("status") == 200
    assert pages.metrics()["pybpfprof_http_cpu_seconds_total"][""] > 0
    end(pages.run)


def test_an_incomplete_request_times_out(site):
    """The time limit is for the whole request: further bytes do not restart it."""
    pages = site()
    with socket.create_connection(("127.0.0.1", pages.port)) as client:
        client.sendall(b"GET /")

        def is_over():
            try:
                client.sendall(b"x")
                return select.select([client], [], [], 0)[0] and client.recv(1) == b""
            except ConnectionError:
                return True
        wait_for(is_over)
    end(pages.run)


NONSENSE = [b"\0" * 1000, b"GET " + b"x" * 100000, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 10000,
            b"GET /\xff?service=\xff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n"]


def test_nonsense(site):
    pages = site()
    for request in NONSENSE:
        with socket.create_connection(("127.0.0.1", pages.port)) as client, contextlib.suppress(OSError):
            client.sendall(request)
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
    """In a browser, the page shows the processes and the flame graph of a service."""
    target(any_python, "busy.py", environment=named("web"))
    pages = site("--window", "0.2s", "-r", "499")
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
    """This is an error only if --listen names the address."""
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
    assert run.status == 0 and "HTTP is disabled" in run.stderr


@pytest.mark.parametrize("address", ["x", "127.0.0.1", "localhost:80", "127.0.0.1:70000", "[::1]"])
def test_an_invalid_address(address, profile, store):
    run = profile.attempt("agent", "--store", store.folder, "--listen", address)
    assert run.status == 1 and "'%s' is not a numeric ADDRESS:PORT" % address in run.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_it_reports_its_port(host, agent):
    run = agent("--listen", host + ":0")
    address = re.search(r"serving HTTP at http://(.*)/$", run.said(), re.MULTILINE).group(1)
    assert address.startswith(host + ":")
    with urllib.request.urlopen("http://%s/healthz" % address, timeout=120) as answer:
        assert answer.read() == b"ok\n"
    end(run)


def test_others_may_reach_it(agent):
    run = agent("--listen", "0.0.0.0:0")
    port = int(re.search(r" at http://0.0.0.0:(\d+)/$", run.said(), re.MULTILINE).group(1))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/healthz", headers={"Host": "node.example"})
    assert connection.getresponse().status == 200
    connection.close()
    end(run)
    assert "there is no authentication" in run.stderr


def test_off(agent):
    run = agent("--listen", "off")
    listening = subprocess.check_output(["ss", "-Hltnp"]).decode()
    assert "pid=%d," % run.pid not in listening
    end(run)
    assert run.status == 0


def test_the_view_stays_when_the_numbers_are_renewed(any_python, target, site, browser, tmp_path):
    """The flame graph in the agent's page keeps its view, service, zoom and search."""
    # A unique file name: it would be lengthened if another process ran a file of the same name.
    program = shutil.copy(os.path.join(PROGRAMS, "busy.py"), str(tmp_path / (own("busy") + ".py")))
    target(any_python, program, environment=named("web"))
    pages = site("--window", "0.2s", "-r", "199")
    browser.messages()
    browser.resize(1280, 1200)
    browser.open("http://%s/" % pages.address)
    browser.enter("#graph")
    wait_for(lambda: browser.run("return Boolean(window.pybpfprof)"))
    graph = Page(browser, "")
    # The page has no samples at first, so they came with a renewal.
    wait_for(lambda: graph.nodes(own("web")))
    browser.click('[data-view="icicle"]')
    graph.choose_process(own("web"))
    graph.search("spin")
    browser.press("Enter", "Enter")
    spin, samples = graph.detail.partition(" · ")[0], graph.samples("all")[0]
    assert spin.startswith("spin (") and graph.state("zoom") in graph.nodes(spin)
    for _ in range(2):
        wait_for(lambda: graph.samples("all")[0] > samples)
        samples = graph.samples("all")[0]
        assert graph.chosen == own("web") and graph.state("view") == "icicle"
        assert graph.state("zoom") in graph.nodes(spin) and graph.detail.startswith(spin + " · ")
        assert browser.run("return document.getElementById('search').value") == "spin"
    # A busy agent may refuse a renewal with 503.
    assert not [text for text in browser.messages() if " 503 " not in text], "errors in the console"
    end(pages.run)
    assert pages.run.status == 0, pages.run.stderr
