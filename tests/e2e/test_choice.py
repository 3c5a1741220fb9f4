# SPDX-License-Identifier: BSD-2-Clause
"""Which processes are profiled when they change during a recording, and when there is no room for all."""

import gzip
import os
import signal
import subprocess

import pytest

from conftest import PATIENCE, children_of, missing, wait_for, wait_used
from embedding import dependencies
from pythons import own_pythons
from test_following import by_process, count, process_of

UID = 33
USER = b"www-data"
RATE = 199
SECONDS = 2
PLACES = 256


def user_of(pid):
    return os.stat("/proc/%d" % pid).st_uid


class TestWorkersOfOthers:
    """Workers whose command lines do not name their program."""

    @pytest.mark.parametrize("how", ["text", "shell"])
    def test_chosen_by_the_name_of_their_ancestor(self, how, target, profile, any_python):
        worker = target(any_python, "spawns.py", how).said
        run = profile("-a", "--comm", "spawns.py", "-r", RATE, cpu=0.3, of=[worker])
        assert count(by_process(run)[worker], "work")
        # The busy program ensures that the recording has samples, and so status 0.
        other = target(any_python, "busy.py").pid
        run = profile("-a", "--exclude", "comm=spawns.py", "-r", RATE, cpu=0.3, of=[worker, other])
        assert worker not in by_process(run)

    def test_ancestor_has_ended(self, target, profile, any_python):
        """The parent ends before the profiler looks at the worker, but the profiler knew the parent."""
        parent = target(any_python, "spawns.py", "text", "later")
        run = profile.start("-a", "--comm", "spawns.py", "-r", RATE)
        run.wait_sampling()
        run.process.send_signal(signal.SIGSTOP)
        parent.go()
        worker = int(parent.process.stdout.readline())
        parent.process.wait(PATIENCE)
        run.process.send_signal(signal.SIGCONT)
        wait_used(0.3, worker)
        assert count(by_process(run.interrupt().load())[worker], "work")


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
        assert count(worker, "as_user") > 0

    @pytest.mark.prove("truth")
    def test_worker_is_no_longer_wanted(self, follow):
        own, worker = follow("--uid", "0", "--comm", "gives_up*")
        assert count(own, "as_root") > 0.05 * SECONDS * RATE
        assert count(worker, "as_user") < 0.5 * SECONDS * RATE

    @pytest.mark.parametrize("options", [("--uid", str(UID)), ("--comm", "wanted-*")])
    def test_a_process_that_is_wanted_again(self, target, profile, any_python, options):
        """The filter is first checked again after 0.1 s, and then at growing intervals."""
        comes_back = target(any_python, "comes_back.py", UID, 0.3, 1, SECONDS)
        recording = profile.start("-a", "-r", RATE, *options)
        recording.wait_sampling()
        comes_back.go()
        comes_back.process.wait(PATIENCE)
        run = recording.interrupt().load()
        stacks = by_process(run)[comes_back.pid]
        assert count(stacks, "as_wanted") > 0
        assert count(stacks, "again_as_wanted") > 0
        assert len({frames[0].label for frames, _ in run.stacks if process_of(frames)[0] == comes_back.pid}) == 1

    @pytest.mark.parametrize("options, seconds", [((), 0), (("--comm", "gives_up*"), 1)])
    def test_the_last_user_is_shown(self, profile, server, tmp_path, options, seconds):
        """The user is right whether or not it was checked during the recording."""
        output = str(tmp_path / "all.pb.gz")
        recording = profile.start("-p", server.pid, "-s", "-o", output, *options, files=False)
        recording.wait_sampling()
        server.go()
        wait_for(lambda: UID in map(user_of, children_of(server.pid)))
        wait_used(seconds, *children_of(server.pid))
        assert recording.interrupt().finish().status == 0, recording.stderr
        with gzip.open(output) as file:
            content = file.read()
        assert USER in content and b"root" in content

    ONE_SHOTS = ("import os, sys, time\n"
                 "def spin(seconds):\n"
                 "    end = time.process_time() + seconds\n"
                 "    while time.process_time() < end: sum(range(100))\n"
                 "print('ready')\n"
                 "sys.stdout.flush()\n"
                 "sys.stdin.readline()\n"
                 "for _ in range(int(sys.argv[2])):\n"
                 "    pid = os.fork()\n"
                 "    if not pid:\n"
                 "        os.setuid(int(sys.argv[1]))\n"
                 "        spin(float(sys.argv[3]))\n"
                 "        os._exit(0)\n"
                 "    os.waitpid(pid, 0)\n")

    @pytest.fixture
    def one_shots(self, target, profile, any_python, tmp_path):
        """one_shots(SECONDS): (a run with processes that work SECONDS each, its number of samples of unknown
        processes, the expected number of samples)."""
        program = tmp_path / "one_shots.py"
        program.write_text(self.ONE_SHOTS)

        def record(seconds):
            children, rate = 25, 997
            parent = target.start([*any_python.command, str(program), str(UID), str(children), str(seconds)])
            recording = profile.start("-a", "-r", rate, "--uid", UID)
            recording.wait_sampling()
            parent.go()
            parent.process.wait(PATIENCE)
            run = recording.interrupt().load(status=None)
            assert parent.pid not in by_process(run)
            return run, run.ledger["unknown_commands"].get("one_shots.py", 0), children * seconds * rate
        return record

    def test_processes_that_end_before_the_next_check(self, one_shots):
        """Their samples are in the profile or counted as unknown under their name."""
        run, unknown, _ = one_shots(0.06)
        assert run.count_name("spin") > 0
        run, unknown, _ = one_shots(0.005)
        assert run.samples + unknown > 0

    @pytest.mark.prove("truth")
    @pytest.mark.parametrize("seconds, part", [(0.06, 0.4), (0.005, 0)])
    def test_the_samples_of_short_lived_processes(self, one_shots, measured, seconds, part):
        run, unknown, due = one_shots(seconds)
        measured("samples of processes of %g s that change their user, in the profile and unknown" % seconds,
                 "%.2f" % ((run.samples + unknown) / due), "> 0.8 of those due")
        assert run.samples + unknown > 0.8 * due
        assert run.count_name("spin") >= part * due

    def test_the_user_of_an_ended_process(self, profile, server, tmp_path):
        """The process ends long before the recording."""
        output = str(tmp_path / "all.pb.gz")
        recording = profile.start("-a", "-r", RATE, "-o", output, files=False)
        recording.wait_sampling()
        server.go()
        server.process.wait(PATIENCE)
        assert recording.interrupt().finish().status == 0, recording.stderr
        with gzip.open(output) as file:
            content = file.read()
        assert USER in content and b"worker-of-test" in content


class TestKnownFile:
    """Processes that run a known file are walked from their exec on.  Meanwhile the filter is checked."""

    RATE = 997
    COUNT = 40
    ONE_FILE = ("import os, sys, time\n"
                "def spin(seconds):\n"
                "    end = time.process_time() + seconds\n"
                "    while time.process_time() < end: sum(range(100))\n"
                "for words in sys.argv[1:]:\n"
                "    uid, seconds = words.split(':')\n"
                "    os.setuid(int(uid))\n"
                "    spin(float(seconds))\n")

    @pytest.fixture
    def shell(self, tmp_path):
        """shell(TEXT): a shell that waits for a line, makes the Python's file known to the profiler and runs
        TEXT, which can run the scripts wanted.py and unwanted.py."""
        pythons = [python for python in own_pythons() if "libpython" not in dependencies(python.path)]
        if not pythons:
            missing("Python that is one file")
        running = []
        for name in ("wanted.py", "unwanted.py"):
            (tmp_path / name).write_text(self.ONE_FILE)

        def start(text):
            script = "read line; run() { name=$1; shift; %s -S -E $name \"$@\"; }; run unwanted.py 0:0.3; %s" % (
                pythons[-1].path, text)
            running.append(subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, cwd=str(tmp_path)))
            return running[0]

        yield start
        for process in running:
            process.kill()
            process.wait()

    def record(self, profile, shell, *options, meanwhile=lambda run: None, status=0):
        """Records while SHELL runs to its end.  Returns the run and {pid: stacks} of wanted.py's processes."""
        run = profile.start("-a", "-r", self.RATE, *options)
        run.wait_sampling()
        shell.stdin.write(b"\n")
        shell.stdin.close()
        meanwhile(run)
        shell.wait(PATIENCE)
        run.interrupt().load(status)
        commands = {frames[0].label for frames, _ in run.stacks}
        assert not any("unwanted.py" in command for command in commands)
        assert "do not add up" not in run.stderr
        assert run.ledger["lost"] == 0
        return run, by_process(run)

    def short_ones(self, profile, shell):
        run, processes = self.record(profile, shell(
            "for i in $(seq %d); do run wanted.py 0:0.003; run unwanted.py 0:0.003; done" % self.COUNT),
            "--comm", "wanted.py")
        assert "wanted.py" not in run.ledger["unknown_commands"]
        return run, processes

    def test_short_processes(self, profile, shell):
        _, processes = self.short_ones(profile, shell)
        assert any(count(stacks, "spin") for stacks in processes.values())

    @pytest.mark.prove("truth")
    def test_the_number_of_short_processes(self, profile, shell, measured):
        """Nearly all processes and all their samples are in the profile."""
        run, processes = self.short_ones(profile, shell)
        measured("processes of 3 ms that a filter wants", len(processes), ">= %g" % (0.95 * self.COUNT))
        assert len(processes) >= 0.95 * self.COUNT
        assert run.ledger["errors"]["not_known_yet"] <= 0.02 * run.samples

    def test_a_process_that_is_wanted_later(self, profile, shell):
        """Its stack is the same before and after it changes its user."""
        _, processes = self.record(profile, shell("run wanted.py 0:0.05 %d:1.5" % UID), "--uid", UID)
        (stacks,) = processes.values()
        assert count(stacks, "spin") > 0

    @pytest.fixture
    def whose_is_gone(self, profile, shell, tmp_path):
        """whose_is_gone(OPTION...): as record(), but the profiler is stopped while wanted.py runs."""
        waiting, go = tmp_path / "waiting", tmp_path / "go"
        started = shell("touch waiting; until [ -e go ]; do sleep 0.05; done; run wanted.py 0:0.1")

        def sleep_through_it(run):
            wait_for(waiting.exists)
            run.process.send_signal(signal.SIGSTOP)
            go.touch()
            started.wait(PATIENCE)
            run.process.send_signal(signal.SIGCONT)
        return lambda *options, **others: self.record(profile, started, *options, meanwhile=sleep_through_it, **others)

    def test_the_user_of_a_process_that_ended_unseen_is_unknown(self, whose_is_gone):
        run, processes = whose_is_gone("--uid", UID, status=5)
        assert not processes
        assert run.ledger["samples_of_unknown_processes"] > 0
        assert run.ledger["unknown_commands"]["wanted.py"] > 0
        assert "that the filter wants" in run.stderr

    def test_a_process_that_ended_unseen_is_known_by_its_command(self, whose_is_gone):
        _, processes = whose_is_gone("--comm", "wanted.py")
        assert len(processes) == 1


class TestFewPlaces:
    def test_a_process_gets_a_place_once_another_has_ended(self, target, profile, any_python, tmp_path):
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
            "def wait():\n"
            "    os.close(writer)\n"
            "    os.read(reader, 1)\n"
            "def last():\n"
            "    burn(0.5)\n"
            "    os.close(writer)\n"
            "    burn(2)\n"
            "print('ready')\n"
            "sys.stdout.flush()\n"
            "sys.stdin.readline()\n"
            "reader, writer = os.pipe()\n"
            "for i in range(6): child(wait)\n"
            "child(last)\n"
            "os.close(writer)\n"
            "for i in range(7): os.wait()\n")
        parent = target.start([*any_python.command, str(program)])
        run = profile.start("-p", parent.pid, "-s", "-r", RATE, "--max-processes", 5)
        run.wait_sampling()
        parent.go()
        run.load()
        assert run.count_name("burn") > 0
        assert run.ledger["processes_without_room"] >= 2
        assert "with --max-processes" in run.stderr
        assert run.stderr.count("too many processes") == 1

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
        """idle(COUNT...): a Python that forks COUNT idle children, the next COUNT after each line of input."""
        program = tmp_path / "idle_of_this_test.py"
        program.write_text(self.IDLE)
        return lambda *counts: target.start([*any_python.command, str(program), *map(str, counts)])

    def test_unwanted_processes_take_no_places(self, target, idle, profile, any_python):
        """This holds for existing and for new processes.  Any process may take a place briefly."""
        parent = idle(PLACES, PLACES)
        run = profile.start("-a", "-r", RATE, "--max-processes", PLACES, "--comm", "deep.py")
        run.wait_sampling()
        parent.go()
        parent.process.stdout.readline()
        wanted = target(any_python, "deep.py", 10)
        wait_used(1, wanted.pid)
        run.interrupt().load()
        assert count(by_process(run)[wanted.pid], "descend") > 0

    SPINNING = ("import os, subprocess, sys\n"
                "for _ in range(int(sys.argv[1])):\n"
                "    if not os.fork():\n"
                "        while True: pass\n"
                "sys.exit(subprocess.call(sys.argv[2:]))\n")

    # BPF briefly gives each new process on the machine a place.
    @pytest.mark.alone
    @pytest.mark.parametrize("options", [(), ("-q",)])
    def test_running_processes_without_room_are_counted(self, profile, any_python, require, tmp_path, options):
        """They are counted even with -q.  The processes share a PID namespace with the profiler."""
        program = tmp_path / "spinning.py"
        program.write_text(self.SPINNING)
        children, places = 6, 3
        prefix = [require("unshare"), "-m", "-p", "-f", "--kill-child", "--mount-proc",
                  *any_python.command, str(program), str(children)]
        run = profile("-a", "-r", RATE, "-d", 1, "--max-processes", places, *options, prefix=prefix)
        assert len(by_process(run)) <= places
        assert run.ledger["processes_without_room"] == children + 1 - places
        assert ("processes beyond the limit: 4" in run.stderr) == (not options)

    def test_no_samples_within_the_limit(self, idle, binary):
        assert idle(3)
        result = subprocess.run(
            [binary, "-a", "--max-processes", "1", "--comm", "idle_of*", "-d", "0.5",
             "-f", "folded", "-o", os.devnull], stderr=subprocess.PIPE, timeout=120)
        assert result.returncode == 5
        assert b"no samples of the processes within the limit" in result.stderr


class TestNoneIsChosen:
    def test_a_message_says_so(self, target, any_python, binary):
        assert target(any_python, "deep.py", 10)
        result = subprocess.run([binary, "-a", "--container", "abcd", "-d", "0.5", "-f", "folded", "-o", os.devnull],
                                stderr=subprocess.PIPE, timeout=120)
        assert result.returncode == 5
        assert b"the filter excluded" in result.stderr
