# SPDX-License-Identifier: BSD-2-Clause
"""uWSGI, which loads libpython with a plug-in and forks workers, under load."""

import os
import socket
import threading

import pytest

from conftest import PROGRAMS, children_of, missing
from containers import wait_for
from pythons import debian

SUITE = "bookworm"
WORKERS = 2
SAMPLES_WANTED = 200
RUNS_AT_MOST = 30  # of 1 s: one is enough unless others keep the CPUs busy


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
        """The pid of each of its workers."""
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


def test_each_worker_is_profiled(server, profile):
    workers = server.workers()
    assert len(workers) == WORKERS
    # Who has not yet may be importing what it needs for it.
    wait_for(lambda: server.answered >= set(workers))
    pids = [word for pid in workers for word in ("-p", pid)]
    burnt = dict.fromkeys(workers, 0)
    samples = errors = 0
    for _ in range(RUNS_AT_MOST):
        run = profile(*pids, "-d", 1, "-r", 999)
        samples += run.samples
        errors += sum(run.ledger["errors"].values())
        for frames, count in run.stacks:
            names = [frame.name for frame in frames[1:]]
            if frames[-1].file:
                assert names[:2] in (["application"], ["application", "burn"]), names
                burnt[int(frames[0].label.partition(":")[0].split()[1])] += count
        if min(burnt.values()) >= SAMPLES_WANTED:
            break
    assert min(burnt.values()) >= SAMPLES_WANTED
    assert errors <= max(1, 0.001 * samples)
    assert run.count_name("burn") >= 0.95 * run.ledger["python"]
