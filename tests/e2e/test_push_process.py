# SPDX-License-Identifier: BSD-2-Clause
"""The process that pushes: its privileges, its end, and the requests that wait meanwhile."""

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
    """The process that sends. Its parent, a child of the agent, restarts it."""
    return children_of(children_of(run.pid)[0])[0]


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        return dict(line.rstrip("\n").split(":\t", 1) for line in status)


def is_gone(pid):
    try:
        return status_of(pid)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_the_sender_has_no_privileges(busy, backend, agent, store):
    """The sender and its keeper have no capabilities, and end even if the agent is killed."""
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
    """A new sender takes over, and each sample is counted once."""
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
    # The hung backend's requests in flight are not sent again.
    assert re.search(re.escape(hung.url()) + r".*: sent, but not acknowledged", run.stderr)
    assert "lost with a push process" not in run.stderr


def test_without_a_store_waiting_requests_are_lost(busy, backend, profile):
    """The end of the sender or of the agent loses waiting requests. They are counted, and the agent fails."""
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
def test_waiting_requests_survive_kills(kind, busy, backend, agent, store):
    """Waiting requests survive the kill of the sender and of the agent, and arrive once."""
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
    # The killed agent may not have handed over its last windows. Check only the first ones.
    missing = {start for start, in store.select("SELECT start_ns FROM windows WHERE samples ORDER BY id LIMIT 3")}
    missing -= {profile.start for profile in server.profiles()}
    if kind == "pyroscope":
        assert not missing and run.status == 0, run.stderr
    else:
        # A request in flight at a kill may have arrived. It counts as sent, and is not repeated.
        assert len(missing) <= 3 and (run.status == 0 or "not acknowledged" in run.stderr), run.stderr
    assert total(server.rows()) <= stored
    profiles = server.profiles()
    assert len({(profile.labels, profile.start) for profile in profiles}) == len(profiles)


def test_unsent_requests_are_kept_for_the_next_agent(busy, backend, agent, store):
    """Everything unsent at the agent's end is kept, and the exit status is 0. The next agent sends it."""
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


# The head of a spool file: magic, number, samples, start of the window, two lengths.
HEAD = struct.Struct("=QQQqQQ")


def test_profiles_too_old_for_the_backend_are_not_sent(busy, backend, agent, store):
    """Pyroscope refuses profiles by their start."""
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
def test_requests_for_removed_backends_are_deleted(pushing, busy, backend, agent, store):
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


def test_the_sender_and_its_keeper_are_killed(busy, backend, agent, store):
    """The agent goes on without pushing, and says so."""
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


def test_the_sender_is_killed_as_the_agent_ends(busy, backend, agent, store):
    """Requests in flight at that moment are counted as lost."""
    server = backend("parca")
    server.answer = hang
    run = agent(*WINDOW, "--push", server.url())
    wait_for(lambda: len(store.windows()) > 2)
    pid = sending_process(run)
    os.kill(pid, signal.SIGSTOP)
    count = len(store.windows())
    run.process.send_signal(signal.SIGTERM)
    # The agent stores the last window before it waits for the sender.
    wait_for(lambda: not run.is_sampling() or len(store.windows()) > count)
    os.kill(pid, signal.SIGKILL)
    run.finish()
    assert run.status == 1
    delivered, handed = summary(run, server.url())
    lost = re.findall(r": (\d+) samples in \d+ requests: ", run.stderr)
    assert delivered == 0 and handed == sum(map(int, lost)) > 0, run.stderr


def test_a_stopped_sender_does_not_stop_the_store(busy, backend, agent, store):
    """The store still gets its windows."""
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


def test_the_sender_cannot_be_started(busy, backend, binary, agent, store):
    """Nothing is sent, and the agent says why."""
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
