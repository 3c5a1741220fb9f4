# SPDX-License-Identifier: BSD-2-Clause
"""Which processes are profiled, as they change while it is recorded, and where there is no room for all."""

import gzip
import os
import subprocess
import time

import pytest

from agents import wait_for
from conftest import PATIENCE, children_of
from test_following import by_process, count

pytestmark = pytest.mark.timed

UID = 33
USER = b"www-data"
RATE = 199
SECONDS = 3
PLACES = 256


def user_of(pid):
    return os.stat("/proc/%d" % pid).st_uid


class TestUserIsGivenUp:
    @pytest.fixture
    def server(self, target, any_python):
        return target(any_python, "gives_up.py", UID, "worker-of-test", SECONDS)

    @pytest.fixture
    def follow(self, profile, server):
        """follow(OPTION...): the stacks of the server, and of its worker."""
        def run(*options):
            recording = profile.start("-a", "-r", RATE, *options)
            recording.wait_sampling()
            server.go()
            server.process.wait(PATIENCE)
            processes = by_process(recording.interrupt().load())
            own = processes.pop(server.pid, [])
            workers = [stacks for stacks in processes.values() if count(stacks, "work")]
            return own, workers[0] if workers else []
        return run

    @pytest.mark.parametrize("options", [("--uid", str(UID)), ("--comm", "worker-of*")])
    def test_worker_is_wanted(self, follow, options):
        own, worker = follow(*options)
        assert own == []
        # It is asked after 0.1, 0.3, 0.7 and 1.5 s of the clock.
        assert count(worker, "as_user") > 0.1 * SECONDS * RATE

    def test_worker_is_wanted_no_more(self, follow):
        own, worker = follow("--uid", "0", "--comm", "gives_up*")
        assert count(own, "as_root") > 0.05 * SECONDS * RATE
        assert count(worker, "as_user") < 0.5 * SECONDS * RATE

    def test_whose_it_is_in_the_end(self, profile, server, tmp_path):
        output = str(tmp_path / "all.pb.gz")
        recording = profile.start("-p", server.pid, "-s", "-o", output, files=False)
        recording.wait_sampling()
        server.go()
        wait_for(lambda: UID in map(user_of, children_of(server.pid)))
        assert recording.interrupt().finish().status == 0, recording.stderr
        with gzip.open(output) as file:
            content = file.read()
        assert USER in content and b"root" in content


class TestFewPlaces:
    def test_who_comes_last_is_sampled_once_another_has_ended(self, target, profile, any_python,
                                                              tmp_path):
        program = tmp_path / "places.py"
        program.write_text(
            "import os, sys, time\n"
            "def burn(seconds):\n"
            "    end = time.process_time() + seconds\n"
            "    while time.process_time() < end: sum(range(100))\n"
            "def child(function):\n"
            "    if not os.fork():\n"
            "        function()\n"
            "        os._exit(0)\n"
            "print('ready')\n"
            "sys.stdout.flush()\n"
            "sys.stdin.readline()\n"
            "for i in range(6): child(lambda: time.sleep(1))\n"
            "child(lambda: burn(3))\n"
            "for i in range(7): os.wait()\n")
        parent = target.start([*any_python.command, str(program)])
        run = profile.start("-p", parent.pid, "-s", "-r", RATE, "--max-processes", 5)
        run.wait_sampling()
        parent.go()
        run.load()
        assert run.count_name("burn") > 0.1 * RATE
        assert run.ledger["processes_without_room"] >= 2
        assert "--max-processes makes more" in run.stderr
        assert run.stderr.count("more processes than room") == 1

    IDLE = ("import ctypes, os, signal, sys\n"
            "for count in map(int, sys.argv[1:]):\n"
            "    for i in range(count):\n"
            "        if not os.fork():\n"
            "            ctypes.CDLL(None).prctl(1, signal.SIGKILL)\n"
            "            signal.pause()\n"
            "    print('ready')\n"
            "    sys.stdout.flush()\n"
            "    sys.stdin.readline()\n")

    @pytest.fixture
    def idle(self, target, any_python, tmp_path):
        """idle(COUNT...): a Python with so many children that do nothing, and so many more at each line."""
        program = tmp_path / "idle_of_this_test.py"
        program.write_text(self.IDLE)
        return lambda *counts: target.start([*any_python.command, str(program), *map(str, counts)])

    def test_what_is_not_wanted_keeps_nobody_out(self, target, idle, profile, any_python):
        """What is there already, and what comes later.  Any process may have a place for a moment."""
        parent = idle(PLACES, PLACES)
        run = profile.start("-a", "-r", RATE, "--max-processes", PLACES, "--comm", "deep.py")
        run.wait_sampling()
        parent.go()
        parent.process.stdout.readline()
        wanted = target(any_python, "deep.py", 10)
        time.sleep(2)
        run.interrupt().load()
        assert count(by_process(run)[wanted.pid], "descend") > 0
        assert run.ledger["processes_without_room"] == 0

    def test_no_samples_for_want_of_room(self, idle, binary):
        assert idle(3)
        result = subprocess.run(
            [binary, "-a", "--max-processes", "1", "--comm", "idle_of*", "-d", "0.5",
             "-f", "folded", "-o", os.devnull], stderr=subprocess.PIPE, timeout=120)
        assert result.returncode == 0
        assert b"no samples of the processes that there was room for" in result.stderr
