# SPDX-License-Identifier: BSD-2-Clause
"""The process that pushes: what it may do, what becomes of it, and of what waits then."""

import os
import re
import signal
import struct

import pytest

from agents import end, total
from conftest import children_of, wait_for
from test_agent_http import LISTEN, Site
from test_push import (KINDS, WINDOW, backend, busy, end_targets, hang, spooled,  # noqa: F401 (fixtures
                       stored_samples, summary)                                   # among them)


def sending_process(run):
    """The one that sends is kept running by another."""
    return children_of(children_of(run.pid)[0])[0]


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return dict(line.rstrip("\n").split(":\t", 1) for line in status)


def is_gone(pid):
    try:
        return status_of(pid)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_who_sends_has_no_privileges(busy, backend, agent, store):
    """And ends with the agent, however that ends."""
    server = backend("pyroscope")
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: server.taken)
    pid, keeper = sending_process(run), children_of(run.pid)[0]
    for status in status_of(keeper), status_of(pid):
        for name in "CapEff", "CapPrm", "CapInh", "CapAmb":
            assert int(status[name], 16) == 0
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    links = [os.readlink("/proc/%d/fd/%s" % (pid, name)) for name in os.listdir("/proc/%d/fd" % pid)]
    assert {link for link in links if store.folder in link} == {os.path.join(store.folder, "push")}
    assert not [link for link in links if "bpf" in link or "perf" in link]
    run.process.kill()
    run.finish()
    wait_for(lambda: is_gone(pid) and is_gone(keeper))


def test_the_sending_process_is_killed(busy, backend, agent, store):
    """Another one goes on, and each sample is counted once."""
    server = backend("pyroscope")
    hung = backend("parca")
    hung.answer = hang
    run = agent(*WINDOW, *LISTEN, "--push", server.url(), "--push", hung.url())
    for _ in range(2):
        count = len(server.taken)
        wait_for(lambda: len(server.taken) > count + 1)
        os.kill(sending_process(run), signal.SIGKILL)
    count = len(server.taken)
    wait_for(lambda: len(server.taken) > count + 2)
    metrics = Site(run).metrics()
    assert metrics["pybpfprof_push_sender_restarts_total"][""] == 2
    assert metrics["pybpfprof_push_sender_cpu_seconds_total"][""] > 0
    assert metrics["pybpfprof_push_sender_memory_bytes"][""] > 1 << 18
    end(run)
    assert run.status == 1
    assert run.stderr.count("was killed by signal 9") == 2, run.stderr
    stored = stored_samples(store)
    for one in server, hung:
        delivered, handed = summary(run, one.url())
        lost = re.findall(re.escape(one.url()) + r": (\d+) samples in \d+ requests: ", run.stderr)
        assert handed == stored == delivered + sum(map(int, lost)), run.stderr
    # What was on its way then, and each of what hung.
    assert re.search(re.escape(hung.url()) + r".*: sent, but not acknowledged", run.stderr)
    assert "lost with a push process" not in run.stderr


def test_without_a_store_it_is_lost(busy, backend, profile):
    """With the sending process, or the agent; that is counted, and a failure."""
    server = backend("pyroscope")
    server.stop()
    run = profile.start("agent", *WINDOW, *LISTEN, "--push", server.url(), files=False)
    run.wait_sampling()
    site = Site(run)

    def waits(restarts):
        metrics = site.metrics()
        return metrics["pybpfprof_push_sender_restarts_total"][""] == restarts and any(
            metrics["pybpfprof_push_queued_bytes"].values())

    wait_for(lambda: waits(0))
    os.kill(sending_process(run), signal.SIGKILL)
    wait_for(lambda: waits(1))
    end(run)
    assert run.status == 1
    assert "and what waited in it is lost" in run.stderr
    lost = re.findall(r": (\d+) samples in \d+ requests: (lost with|not delivered)", run.stderr)
    assert [which for _, which in sorted(lost, key=lambda each: each[1])] == ["lost with", "not delivered"]
    assert sum(int(samples) for samples, _ in lost) == summary(run, server.url())[1]


@pytest.mark.parametrize("kind", KINDS)
def test_what_waits_is_kept(kind, busy, backend, agent, store):
    """Over the sending process's end and the agent's, whoever kills them; it arrives once."""
    server = backend(kind)
    server.stop()
    run = agent(*WINDOW, "--push", server.url())
    for count in 1, 3:
        wait_for(lambda: len(spooled(store)) > count)
        os.kill(sending_process(run), signal.SIGKILL)
    run.process.kill()
    run.finish()
    server.start()
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: not spooled(store))
    end(run)
    stored = stored_samples(store)
    # But for what the agent could not hand over any more.
    missing = {start for start, in store.select("SELECT start_ns FROM windows WHERE samples ORDER BY id LIMIT 3")}
    missing -= {profile.start for profile in server.profiles()}
    if kind == "pyroscope":
        assert not missing and run.status == 0, run.stderr
    else:
        # One on its way when a process is killed may have arrived: that counts, and is not sent again.
        assert len(missing) <= 3 and (run.status == 0 or "not acknowledged" in run.stderr), run.stderr
    assert total(server.rows()) <= stored
    profiles = server.profiles()
    assert len({(profile.labels, profile.start) for profile in profiles}) == len(profiles)


def test_what_is_left_is_kept(busy, backend, agent, store):
    """All of it; that is no failure, and the next agent has it."""
    server = backend("parca")
    server.stop()
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(spooled(store)) >= 3)
    end(run)
    assert run.status == 0, run.stderr
    first = stored_samples(store)
    assert re.search(r": %d samples in \d+ requests: kept in the store" % first, run.stderr)
    server.start()
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: stored_samples(store) > first)
    end_targets(store, busy)
    wait_for(lambda: not spooled(store))
    end(run)
    assert run.status == 0, run.stderr
    stored = stored_samples(store)
    assert summary(run, server.url()) == (stored, stored)
    assert total(server.rows()) == stored and not spooled(store)


# What a file begins with: magic, number, samples, start of the window, lengths.
HEAD = struct.Struct("=QQQqQQ")


def test_what_began_too_long_ago_is_not_sent(busy, backend, agent, store):
    """Pyroscope looks at when a profile begins."""
    server = backend("pyroscope")
    server.stop()
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(spooled(store)) >= 3)
    end(run)
    path = os.path.join(store.folder, "push", min(spooled(store)))
    with open(path, "r+b") as file:
        magic, number, samples, start, *lengths = HEAD.unpack(file.read(HEAD.size))
        assert start == store.select("SELECT min(start_ns) FROM windows WHERE samples")[0][0]
        file.seek(0)
        file.write(HEAD.pack(magic, number, samples, start - 59 * 60 * 10**9, *lengths))
    server.start()
    run = agent(*WINDOW, "--push", server.url())
    end_targets(store, busy)
    wait_for(lambda: not spooled(store))
    end(run)
    assert run.status == 1
    assert "%d samples in 1 requests: too old for the backend" % samples in run.stderr
    stored = stored_samples(store)
    assert summary(run, server.url()) == (stored - samples, stored)


@pytest.mark.parametrize("pushing", [True, False], ids=["to-another", "to-none"])
def test_what_nobody_wants_any_more_is_removed(pushing, busy, backend, agent, store):
    gone, server = backend("parca"), backend("otlp")
    gone.stop()
    run = agent(*WINDOW, "--push", gone.url())
    wait_for(lambda: spooled(store))
    end(run)
    count, windows = len(spooled(store)), len(store.windows())
    run = agent(*WINDOW, *(["--push", server.url()] if pushing else []))
    wait_for(lambda: server.taken or not pushing and len(store.windows()) > windows + 1)
    end(run)
    assert run.status == 0, run.stderr
    assert count and "removed %d requests that were incomplete, or for backends" % count in run.stderr
    if pushing:
        assert not spooled(store)
    else:
        assert not os.path.exists(os.path.join(store.folder, "push"))


def test_it_and_who_keeps_it_are_killed(busy, backend, agent, store):
    """The agent goes on with all else, and says so."""
    server = backend("pyroscope")
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: server.taken)
    pid = sending_process(run)
    os.kill(children_of(run.pid)[0], signal.SIGKILL)
    wait_for(lambda: is_gone(pid))
    count = len(store.windows())
    wait_for(lambda: len(store.windows()) > count + 2)
    end(run)
    assert run.status == 1
    assert "restart the agent" in run.stderr
    store.check()


def test_it_is_killed_as_the_agent_ends(busy, backend, agent, store):
    """What is on its way then is counted, too."""
    server = backend("parca")
    server.answer = hang
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(store.windows()) > 2)
    pid = sending_process(run)
    os.kill(pid, signal.SIGSTOP)
    count = len(store.windows())
    run.process.send_signal(signal.SIGTERM)
    # The last window is stored before what pushes is waited for.
    wait_for(lambda: not run.is_sampling() or len(store.windows()) > count)
    os.kill(pid, signal.SIGKILL)
    run.finish()
    assert run.status == 1
    delivered, handed = summary(run, server.url())
    lost = re.findall(r": (\d+) samples in \d+ requests: ", run.stderr)
    assert delivered == 0 and handed == sum(map(int, lost)) > 0, run.stderr


def test_one_that_is_stopped(busy, backend, agent, store):
    """Not even that keeps windows from the store."""
    server = backend("pyroscope")
    run = agent("--window", "0.1s", "-r", "199", "--push", server.url())
    wait_for(lambda: server.taken)
    pid = sending_process(run)
    os.kill(pid, signal.SIGSTOP)
    count = len(store.windows())
    try:
        wait_for(lambda: len(store.windows()) > count + 20)
    finally:
        os.kill(pid, signal.SIGCONT)
    end(run)
    store.check()


def test_it_cannot_be_started(busy, backend, binary, agent, store):
    """What it would have sent was not sent, and why is said."""
    server = backend("pyroscope")
    environment = dict(os.environ, FAIL_PROCESSES="1000000",
                       LD_PRELOAD=os.path.join(os.path.dirname(binary), "fail_starts.so"))
    run = agent(*WINDOW, "--push", server.url(), env=environment)
    wait_for(lambda: len(store.windows()) > 2)
    end(run)
    assert run.status == 1
    delivered, handed = summary(run, server.url())
    assert delivered == 0 < handed and not server.taken
    assert re.search(re.escape(server.url()) + r": %d samples in \d+ requests: not accepted by the push process"
                     % handed, run.stderr), run.stderr
    assert "sent, but not acknowledged" not in run.stderr
    assert re.search("nothing was pushed since: cannot start the push process .*: raise ulimit -u ",
                     run.stderr), run.stderr
