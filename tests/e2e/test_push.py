# SPDX-License-Identifier: BSD-2-Clause
"""Every pushed sample arrives, and a bad backend delays nothing."""

import collections
import email.utils
import math
import os
import re
import shutil
import signal
import socket
import threading
import time

import pytest

from push_servers import PATHS, authority, backend, read_pyroscope  # noqa: F401 (fixtures among them)
from agents import ONLY_OWN, end, named, own, total
from conftest import wait_for
from test_agent_http import LISTEN, Site

KINDS = sorted(PATHS)
WINDOW_S = 0.2
SENDER_GRACE_S = 5
WINDOW = ("--window", "%gs" % WINDOW_S, "-r", "199", *ONLY_OWN)
SUMMARY = re.compile(r"(\d+) of (\d+) samples were delivered")


@pytest.fixture
def busy(any_python, target):
    """A service that never rests."""
    return target(any_python, "busy.py", environment=named("web"))


def summed(rows):
    sums = collections.Counter()
    for service, frames, count in rows:
        sums[service, frames] += count
    return sums


def summary(run, url):
    """(delivered, handed over) from the agent's last message on the URL."""
    line = next(line for line in run.stderr.splitlines() if url in line and SUMMARY.search(line))
    return tuple(map(int, SUMMARY.search(line).groups()))


def spooled(store):
    """The files that wait to be sent."""
    return os.listdir(os.path.join(store.folder, "push"))


def windows_with_samples(store):
    """Nothing is sent for a window without samples, as the last one may be."""
    return [row for row in store.check().values() if row[1]]


def stored_samples(store):
    return sum(row[1] for row in store.check().values())


def check_all_is_there(run, server, store):
    """Each stored sample was delivered once, or its request waits for the agent's next start."""
    delivered, handed = summary(run, server.url())
    kept = re.findall(re.escape(server.url()) + r": (\d+) samples in \d+ requests: kept", run.stderr)
    assert handed == stored_samples(store) == delivered + sum(map(int, kept)), run.stderr
    assert total(server.rows()) == delivered


def end_targets(store, *targets):
    """Ends the targets. Returns once the store gets no more samples of them."""
    for one in targets:
        one.end()
    count = len(store.windows())
    wait_for(lambda: len(store.windows()) > count + 2)


@pytest.mark.parametrize("kind", KINDS)
def test_every_sample_arrives(kind, any_python, target, backend, agent, report, store):  # noqa: F811
    """The delivered samples have the store's functions, files, lines and counts."""
    web = target(any_python, "busy.py", environment=named("web"))
    many = target(any_python, "many_stacks.py", 500, environment=named("many"))
    server = backend(kind)
    services = {own("web"), own("many")}
    run = agent(*WINDOW, "--node", "here", "--push", server.url())
    wait_for(lambda: len(server.taken) >= 4 and {row[0] for row in server.rows()} == services
             and len(server.rows()) > 20)
    end_targets(store, web, many)
    wait_for(lambda: total(server.rows()) == stored_samples(store))
    end(run)
    assert run.status == 0, run.stderr
    stored = stored_samples(store)
    assert summary(run, server.url()) == (stored, stored)
    assert summed(server.rows()) == summed(report("--full-filenames"))
    profiles = server.profiles()
    # Backends would merge profiles with equal labels and start.
    assert len({(profile.labels, profile.start) for profile in profiles}) == len(profiles)
    starts = {start for (start,) in store.select("SELECT start_ns FROM windows WHERE samples")}
    assert {profile.start for profile in profiles} == starts
    web = [dict(profile.labels) for profile in profiles if own("web") in dict(profile.labels).values()]
    assert web and all("here" in labels.values() for labels in web)
    version = "%d.%d" % any_python.version[:2]
    assert all(any(value.startswith(version) for value in labels.values()) for labels in web)


def test_without_a_store(busy, backend, profile):  # noqa: F811
    server = backend("pyroscope")
    # A host name is looked up in a thread.
    url = server.url().replace("127.0.0.1", "localhost")
    run = profile.start("agent", *WINDOW, "--push", url, files=False)
    run.wait_sampling()
    wait_for(lambda: own("web") in {row[0] for row in server.rows()})
    end(run)


@pytest.mark.parametrize("kind", KINDS)
def test_a_backend_that_comes_up_late(kind, busy, backend, agent, store):  # noqa: F811
    """Requests wait until the backend comes up, and arrive once."""
    server = backend(kind)
    server.stop()
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(store.windows()) >= 3)
    server.start()
    wait_for(lambda: len(server.taken) >= 3)
    end(run)
    assert run.status == 0, run.stderr
    assert len(re.findall("retrying; what waits", run.stderr)) == 1
    assert len(re.findall("delivery works again", run.stderr)) == 1
    check_all_is_there(run, server, store)


def hang(handler, request=None):
    handler.server.backend.ended.wait(60)


def drip(handler, request):
    """An endless answer, a byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/proto")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.backend.ended.wait(0.05):
        handler.wfile.write(b"x")


def flood(handler, request):
    """An endless answer, as fast as it can be read."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n\r\n")
    while not handler.server.backend.ended.is_set():
        handler.wfile.write(b"x" * 65536)


def reset_in_the_body(handler):
    handler.rfile.read(10)
    handler.reset()
    return True


def reset_in_the_answer(handler, request):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Le")
    handler.wfile.flush()
    handler.reset()


def garbage(handler, request):
    handler.wfile.write(os.urandom(5000))
    handler.close_connection = True


# (before, answer) hooks of a Backend.
BAD = [(None, hang), (hang, None), (None, drip), (None, flood), (reset_in_the_body, None),
       (None, reset_in_the_answer), (None, garbage)]


def test_bad_backends_do_not_affect_a_good_one(busy, backend, agent, store):  # noqa: F811
    """The bad ones' requests are kept in the store."""
    bad, good = [backend("pyroscope") for _ in BAD], backend("otlp")
    for one, (before, answer) in zip(bad, BAD):
        one.before, one.answer = before, answer
    pushed = [word for one in bad for word in ("--push", one.url() + " timeout=0.5s")]
    run = agent(*WINDOW, *pushed, "--push", good.url())
    wait_for(lambda: len(good.taken) >= 6)
    end_targets(store, busy)
    wait_for(lambda: total(good.rows()) == stored_samples(store))
    end(run)
    assert run.status == 0, run.stderr
    check_all_is_there(run, good, store)
    for one in bad:
        assert summary(run, one.url()) == (0, stored_samples(store))
        kept = re.search(re.escape(one.url()) + r": (\d+) samples in \d+ requests: kept", run.stderr)
        assert int(kept[1]) == stored_samples(store)


@pytest.fixture
def silent_name_server(tmp_path):
    """A command prefix that makes the command use a name server that never answers."""
    config = tmp_path / "resolv.conf"
    config.write_text("nameserver 127.9.9.9\noptions timeout:30\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.9.9.9", 53))
        yield ["unshare", "--mount", "sh", "-c",
               "mount --bind '%s' /etc/resolv.conf && exec \"$@\"" % config, "sh"]


@pytest.mark.prove("push")
def test_a_name_that_is_not_found_delays_nothing(busy, backend, agent, store, silent_name_server):  # noqa: F811
    """A pending name look-up does not delay the agent's end either."""
    good = backend("pyroscope")
    run = agent(*WINDOW, "--push", "parca+http://backend.test:7070 timeout=0.5s",
                "--push", good.url(), prefix=silent_name_server)
    wait_for(lambda: len(store.windows()) >= 6)
    started = time.monotonic()
    end(run)
    assert time.monotonic() - started < 25  # a look-up takes 30 s
    assert run.status == 0, run.stderr
    assert re.search("backend.test:7070: .*(Resolving|resolve|timed out)", run.stderr), run.stderr
    assert total(good.rows()) == sum(row[1] for row in store.check().values())
    gaps = [late.time - early.time for early, late in zip(good.taken[:-2], good.taken[1:-1])]
    assert max(gaps) < WINDOW_S + 15, gaps


def in_a_second():
    """An HTTP date one to two seconds ahead: dates have whole seconds."""
    return email.utils.formatdate(math.ceil(time.time()) + 1, usegmt=True)


def test_retry_after_is_respected(busy, backend, agent, store):  # noqa: F811
    """After 429 with Retry-After nothing is sent too early, and then everything is."""
    server = backend("otlp")
    waits = []

    def answer(handler, request):
        if len(waits) < 2:
            waits.append(time.monotonic())
            handler.reply(429, Retry_After="1" if len(waits) == 1 else in_a_second())
        else:
            server.take(handler, request)
    server.answer = answer
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(server.taken) >= 3)
    end(run)
    assert run.status == 0, run.stderr
    times = waits + [server.taken[0].time]
    assert all(late - early >= 1 for early, late in zip(times, times[1:])), times
    assert "answered 429" in run.stderr
    check_all_is_there(run, server, store)


@pytest.mark.parametrize("kind,status", [("pyroscope", 500), ("parca", 503)])
def test_a_backend_that_recovers(kind, status, busy, backend, agent, store):  # noqa: F811
    """Everything arrives once after the backend recovers."""
    server = backend(kind)
    server.answer = lambda handler, request: handler.reply(status, body=b"out of order")
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(store.windows()) >= 6)
    server.answer = None
    wait_for(lambda: len(server.taken) >= 6)
    end(run)
    assert run.status == 0, run.stderr
    assert "answered %d: out of order" % status in run.stderr
    check_all_is_there(run, server, store)


@pytest.mark.parametrize("status,outcome,is_parted", [
    (400, "refused by the backend", True), (401, "refused by the backend", False),
    (302, "refused by the backend", False), (413, "too large for the backend", True)])
def test_refused_requests_are_not_sent_again(status, outcome, is_parted, busy, any_python, target, backend,
                                           agent, store):
    """Except if one series of several may be the cause: then each series is sent alone."""
    other = target(any_python, "busy.py", environment=named("api"))
    server = backend("pyroscope")
    server.answer = lambda handler, request: handler.reply(status, Location=server.url("/else"),
                                                           body=b"no \x1b[2J")

    def requests():
        """The numbers of series of requests with several, and of requests with one."""
        series = [len(list(read_pyroscope(request.body))) for request in server.seen]
        return [count for count in series if count > 1], [count for count in series if count == 1]

    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(server.seen) >= 4 and requests()[0])
    end_targets(store, busy, other)
    windows = windows_with_samples(store)
    wait_for(lambda: len(server.seen) >= len(windows) + sum(requests()[0]) * is_parted)
    end(run)
    assert run.status == 1
    assert len({request.body for request in server.seen}) == len(server.seen)
    several, _ = requests()
    assert len(server.seen) == len(windows) + sum(several) * is_parted
    samples = sum(row[1] for row in windows)
    assert summary(run, server.url()) == (0, samples)
    assert "%d samples in %d requests: %s" % (
        samples, len(server.seen) - len(several) * is_parted, outcome) in run.stderr
    assert r"answered %d: no \x1b[2J" % status in run.stderr
    assert len(re.findall("answered %d" % status, run.stderr)) == 1


@pytest.mark.parametrize("with_store", [True, False], ids=["store", "memory"])
def test_one_series_is_refused(with_store, busy, any_python, target, backend, agent, profile):  # noqa: F811
    """One bad series makes Pyroscope refuse a request, though it takes the others without saying so."""
    target(any_python, "busy.py", environment=named("bad"))
    server = backend("pyroscope")
    bad, all_series = [], []

    def answer(handler, request):
        refused = [one for one in read_pyroscope(request.body)
                   if dict(one.labels)["service_name"] == own("bad")]
        all_series.append(len(list(read_pyroscope(request.body))))
        bad.extend(refused if all_series[-1] == 1 else [])
        if refused:
            handler.reply(400, body=b"series 1 is bad")
        else:
            server.take(handler, request)
    server.answer = answer
    if with_store:
        run = agent(*WINDOW, "--push", server.url())
    else:
        run = profile.start("agent", *WINDOW, "--push", server.url(), files=False)
        run.wait_sampling()
    wait_for(lambda: len(bad) >= 3 and own("web") in {row[0] for row in server.rows()})
    end(run)
    assert run.status == 1
    refused = sum(sum(one.stacks.values()) for one in bad)
    delivered, handed = summary(run, server.url())
    assert max(all_series) > 1 and refused
    assert delivered == total(server.rows())
    others = re.findall(r": (\d+) samples in \d+ requests: ", run.stderr)
    assert handed == delivered + sum(map(int, others)), run.stderr
    assert "%d samples in %d requests: refused by the backend" % (refused, len(bad)) in run.stderr
    # Delivery works again only with a window without the bad series, not with each series sent alone.
    over = {one.start for one in server.profiles()} - {one.start for one in bad}
    assert len(re.findall("delivery works again", run.stderr)) <= len(over)


def test_a_web_page_is_no_answer(busy, backend, agent):  # noqa: F811
    """Parca answers requests with an unknown path with 200 and its web page."""
    server = backend("parca")
    server.answer = lambda handler, request: handler.reply(200, "text/html", b"<!doctype html>")
    run = agent(*WINDOW, "--push", server.url("/else"))
    wait_for(lambda: len(server.seen) >= 2)
    end(run)
    assert run.status == 1
    assert "is the URL right?" in run.stderr
    assert "answered by something other than this kind of backend" in run.stderr
    assert server.seen[0].path == "/else" + PATHS["parca"]


@pytest.mark.parametrize("kind", ["parca", "otlp"])
def test_requests_that_may_have_arrived_are_not_repeated(kind, busy, backend, agent, store):  # noqa: F811
    """Parca and OTLP backends would count a repeated request twice."""
    server = backend(kind)
    server.answer = lambda handler, request: handler.reset()
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(server.seen) >= 4)
    end(run)
    assert run.status == 1
    assert len({request.body for request in server.seen}) == len(server.seen)
    assert "sent, but not acknowledged" in run.stderr
    assert len(server.seen) <= len(windows_with_samples(store))


@pytest.mark.prove("push")
def test_the_agent_waits_for_an_answer_at_its_end(busy, backend, profile):  # noqa: F811
    """The agent waits for an answer longer than it tries to send the rest, which it gives up."""
    server = backend("parca")

    def answer(handler, request):
        time.sleep(SENDER_GRACE_S + 2)
        server.take(handler, request)
    server.answer = answer
    run = profile.start("agent", *WINDOW, *LISTEN, "--push", server.url(), files=False)
    wait_for(lambda: server.seen)
    site = Site(run)
    count = site.metrics()["pybpfprof_windows_total"][""]
    wait_for(lambda: site.metrics()["pybpfprof_windows_total"][""] > count + 2)
    end(run)
    assert "sent, but not acknowledged" not in run.stderr
    delivered, handed_over = summary(run, server.url())
    assert handed_over > delivered == total(server.rows()) > 0


def test_a_reset_connection_does_not_repeat_a_request(busy, backend, agent, store):  # noqa: F811
    """On a reused connection libcurl would repeat the request by itself."""
    server = backend("parca")

    def answer(handler, request):
        if len(server.seen) % 2:
            server.take(handler, request)
        else:
            handler.reset()
    server.answer = answer
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(server.seen) >= 6)
    end(run)
    assert len({request.body for request in server.seen}) == len(server.seen)


@pytest.mark.parametrize("names,trusted", [("DNS:elsewhere.test", True), ("IP:127.0.0.1", False)],
                         ids=["wrong-name", "wrong-authority"])
def test_a_server_with_a_bad_certificate_gets_nothing(names, trusted, busy, backend, authority, agent, store):  # noqa: F811
    ours, theirs = authority("ours"), authority("theirs")
    server = backend("pyroscope", (ours if trusted else theirs).sign(names))
    run = agent(*WINDOW, "--push", server.url() + " ca=" + ours.certificate)
    wait_for(lambda: len(store.windows()) >= 4)
    end(run)
    assert run.status == 0 and "kept in the store" in run.stderr
    assert not server.seen
    assert re.search("SSL.*certificate", run.stderr), run.stderr


def test_a_changed_certificate(busy, backend, authority, agent, store, tmp_path):  # noqa: F811
    """First the certificate changes, then its authority. The agent rereads the authority's file."""
    ours, theirs = authority("ours"), authority("theirs")
    trusted = str(shutil.copy(ours.certificate, tmp_path / "trusted.crt"))
    server = backend("parca", ours.sign("IP:127.0.0.1"))
    run = agent(*WINDOW, "--push", server.url() + " ca=" + trusted)
    for change in (lambda: ours, lambda: theirs):
        count = len(server.taken)
        wait_for(lambda: len(server.taken) > count + 1)
        server.stop()
        server.certificate = change().sign("IP:127.0.0.1")
        server.start()
    count, windows = len(server.taken), len(store.windows())
    wait_for(lambda: len(store.windows()) > windows + 2)
    assert len(server.taken) == count
    shutil.copy(theirs.certificate, trusted)
    wait_for(lambda: len(server.taken) > count + 2)
    end(run)
    assert run.status == 0, run.stderr
    check_all_is_there(run, server, store)


def test_credentials_are_read_each_time(busy, backend, agent, tmp_path):  # noqa: F811
    first, second = backend("pyroscope"), backend("parca")
    token, user = tmp_path / "token", tmp_path / "user"
    token.write_text("first\n")
    user.write_text("name:secret\n")
    run = agent(*WINDOW, "--push", "%s token=%s tenant=us" % (first.url(), token),
                "--push", "%s user=%s" % (second.url(), user))
    wait_for(lambda: len(first.taken) >= 2 and second.taken)
    token.write_text("second\n")
    count = len(first.taken)
    wait_for(lambda: len(first.taken) >= count + 2)
    end(run)
    assert run.status == 0, run.stderr
    said = [request.headers["Authorization"] for request in first.taken]
    assert said[0] == "Bearer first" and said[-1] == "Bearer second"
    assert {request.headers["X-Scope-OrgID"] for request in first.taken} == {"us"}
    # One backend's credentials are not sent to the other.
    for request in second.taken:
        assert request.headers["Authorization"] == "Basic bmFtZTpzZWNyZXQ="
        assert not request.headers["X-Scope-OrgID"]


def test_pushing_through_a_proxy(busy, backend, agent):  # noqa: F811
    """The environment names the proxy."""
    proxy = backend("pyroscope")
    run = agent(*WINDOW, "--push", "pyroscope+http://backend.test:1234",
                env=dict(os.environ, http_proxy="http://127.0.0.1:%d" % proxy.port))
    wait_for(lambda: len(proxy.taken) >= 2)
    end(run)
    assert run.status == 0, run.stderr
    assert proxy.taken[0].path == "http://backend.test:1234" + PATHS["pyroscope"]


def test_the_queue_is_bounded(any_python, target, backend, agent, store):  # noqa: F811
    """A full queue drops the oldest requests, and counts them."""
    many = target(any_python, "many_stacks.py", 2000, 150, environment=named("many"))
    server, is_full, known = backend("pyroscope"), threading.Event(), set()

    def answer(handler, request):
        is_full.wait()
        server.take(handler, request)

    def dropped():
        # Names begin with a number, except "unwritten". Files being sent have a suffix.
        now = {name[:16] for name in spooled(store) if name != "unwritten"}
        known.update(now)
        return known - now
    server.answer = answer
    run = agent("--window", "0.2s", "-r", "999", *ONLY_OWN, "--push", server.url() + " queue=1M timeout=600s")
    wait_for(lambda: server.seen and dropped())
    is_full.set()
    end_targets(store, many)
    wait_for(lambda: not spooled(store))
    end(run)
    assert run.status == 1
    assert "dropped: the queue was full" in run.stderr
    stored = stored_samples(store)
    delivered, handed = summary(run, server.url())
    assert handed == stored and delivered == total(server.rows()) < stored
    # The first request was already being sent. Of the rest the newest survived.
    starts = [start for start, in store.select("SELECT start_ns FROM windows WHERE samples ORDER BY id")]
    there = sorted({profile.start for profile in server.profiles()})
    assert there[0] == starts[0] and there[1:] == starts[-len(there[1:]):]


def test_a_reload_keeps_the_backends(busy, backend, profile, tmp_path):  # noqa: F811
    """A reload does not change the backends, and loses nothing."""
    first, second = backend("pyroscope"), backend("parca")
    config = tmp_path / "agent.yaml"
    config.write_text("push: [%s timeout=5s, %s]\nwindow: 0.2s\nrate: 199\n"
                      % (first.url(), second.url()))
    run = profile.start("agent", "--config", config, *ONLY_OWN, *LISTEN, files=False)
    run.wait_sampling()
    wait_for(lambda: len(first.taken) >= 2)
    config.write_text("push: [%s]\nwindow: 0.1s\nrate: 99\n" % first.url())
    run.process.send_signal(signal.SIGHUP)
    count = len(second.taken)
    wait_for(lambda: len(second.taken) > count + 3)
    # With such a window Pyroscope would refuse everything.
    config.write_text("push: [%s]\nwindow: 1h\n" % first.url())
    run.process.send_signal(signal.SIGHUP)
    count = len(second.taken)
    wait_for(lambda: len(second.taken) > count + 3)
    busy.end()
    site = Site(run)
    newest = site.metrics()["pybpfprof_windows_total"][""]
    wait_for(lambda: site.metrics()["pybpfprof_windows_total"][""] > newest + 2
             and not any(site.metrics()["pybpfprof_push_queued_bytes"].values()))
    end(run)
    assert run.status == 0, run.stderr
    assert "use a shorter --window" in run.stderr
    assert "the configuration is unchanged" in run.stderr
    assert total(first.rows()) == total(second.rows()) == summary(run, second.url())[0]


def test_metrics(busy, backend, agent):  # noqa: F811
    good, bad = backend("otlp"), backend("pyroscope")
    bad.stop()
    site = Site(agent(*WINDOW, *LISTEN, "--push", good.url(), "--push", bad.url()))

    def metric(name, server, more=""):
        return site.metrics()["pybpfprof_push_" + name]['backend="%s"%s' % (server.url(), more)]
    delivered = ',outcome="delivered"'
    wait_for(lambda: metric("requests_total", good, delivered) >= 3 and metric("attempts_total", bad) > 0
             and metric("queued_bytes", bad) > 0)
    assert 0 < metric("samples_total", good, delivered) <= total(good.rows())
    assert metric("samples_total", bad, delivered) == 0
    end(site.run)


@pytest.mark.parametrize("value,said", [
    ("http://127.0.0.1:4040", "pyroscope+http"),
    ("parca+http://user:word@127.0.0.1", "user=FILE"),
    ("parca+gopher://127.0.0.1", "neither http"),
    ("parca+http://127.0.0.1 token=/nonexistent", "cannot read /nonexistent"),
    ("parca+http://127.0.0.1 password=secret", "token=FILE")])
def test_wrong_options(value, said, profile):
    run = profile.attempt("agent", "--push", value)
    assert run.status == 2
    lines = run.stderr.splitlines()
    assert len(lines) == 1 and said in lines[0], run.stderr


@pytest.mark.parametrize("kind", ["pyroscope", "otlp"])
def test_a_window_too_long_for_the_backend_is_refused(kind, profile):
    """Pyroscope refuses profiles that began an hour ago."""
    run = profile.attempt("agent", "--window", "1h", "--push", kind + "+http://127.0.0.1:1")
    assert run.status == 2
    assert len(run.stderr.splitlines()) == 1 and "use a shorter --window" in run.stderr


def test_a_secret_over_plain_http_causes_a_warning(busy, agent, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    # Nothing answers at this address.
    run = agent(*WINDOW, "--push",
                "pyroscope+http://192.0.2.1:4040 timeout=0.2s token=%s" % token)
    end(run)
    assert "gets a secret over plain http" in run.stderr
    assert "secret\n" not in run.stderr
