# SPDX-License-Identifier: BSD-2-Clause
"""uWSGI under load: it loads libpython with a plug-in, and forks workers."""

import os
import socket
import threading

import pytest

from conftest import PROGRAMS, children_of, missing, wait_for
from legal import BRIEF, briefly_and_long, check_whole, runs_until
from pythons import debian

SUITE = "bookworm"
WORKERS = 2


class Server:
    """uWSGI with wsgi.py, behind a socket that speaks HTTP."""

    def __init__(self, target, folder):
        self.path = os.path.join(str(folder), "socket")
        self.target = target.start(
            [debian.ENTER, os.path.join(debian.CACHE, "pythons", SUITE), "/usr/bin/uwsgi-core",
             "--plugins-dir", "/usr/lib/uwsgi/plugins", "--plugin", "python311", "--master",
             "--no-orphans", "--processes", str(WORKERS), "--http-socket", self.path, "--disable-logging",
             "--wsgi-file", os.path.join(PROGRAMS, "wsgi.py")])
        self.over = threading.Event()
        self.answered = set()

    def ask(self):
        """The pid of the worker that answers one request."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            with connection.makefile("rb") as answer:
                return int(answer.read().partition(b"\r\n\r\n")[2])

    def workers(self):
        """The PIDs of its workers."""
        return children_of(self.target.pid)

    def keep_busy(self):
        while not self.over.is_set():
            self.answered.add(self.ask())


@pytest.fixture
def server(target, tmp_path):
    if not debian.is_there(SUITE):
        missing("uWSGI of Debian's " + SUITE)
    server = Server(target, tmp_path)
    clients = [threading.Thread(target=server.keep_busy) for _ in range(2 * WORKERS)]
    for client in clients:
        client.start()
    yield server
    server.over.set()
    for client in clients:
        client.join()


@briefly_and_long()
def test_each_worker_is_profiled(server, profile, measured, cpu):
    workers = server.workers()
    assert len(workers) == WORKERS
    # A worker that has not answered yet may still be importing modules.
    wait_for(lambda: server.answered >= set(workers))
    pids = [word for pid in workers for word in ("-p", pid)]
    burnt = dict.fromkeys(workers, 0)

    def all_are_seen(runs):
        for frames, count in runs[-1].stacks:
            names = [frame.name for frame in frames[1:]]
            if frames[-1].file:
                assert names[:2] in (["application"], ["application", "burn"]), names
                burnt[int(frames[0].label.partition(":")[0].split()[1])] += count
        return all(burnt.values())

    runs = runs_until(profile, all_are_seen, *pids, "-r", 999, cpu=cpu / WORKERS)
    if cpu > BRIEF:
        samples = sum(run.samples for run in runs)
        errors = sum(sum(run.ledger["errors"].values()) for run in runs)
        check_whole(measured, "workers of uWSGI", samples - errors, samples)
        assert runs[-1].count_name("burn") >= 0.95 * runs[-1].ledger["python"]
