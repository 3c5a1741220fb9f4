# SPDX-License-Identifier: BSD-2-Clause
"""The Python that matters is a child: of what stands behind --, or of a process that is named."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from conftest import remove_group, wait_for, wait_used

NOT_PYTHON, NO_SAMPLE = 3, 5

BURN = "import time\ndef burn():\n    end = time.process_time() + %s\n    while time.process_time() < end: sum(range(1000))\nburn()\n"


@pytest.fixture
def script(tmp_path):
    """script(NAME, TEXT): a file, which may be executed."""
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)
    return write


@pytest.fixture
def executable(any_python):
    return any_python.command[0]


@contextlib.contextmanager
def running(*command, **options):
    """Its process group goes with it."""
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_frozen(folder):
    for name, word in ("freezer.state", "FROZEN"), ("cgroup.events", "frozen 1"):
        if os.path.exists("%s/%s" % (folder, name)):
            with open("%s/%s" % (folder, name), encoding="ascii") as file:
                return word in file.read()
    return False


def children(pid, seconds=0.05):
    """The processes that PID has started, once they have used so much CPU time."""
    def found():
        pids = [int(line) for line in subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout.split()]
        return pids if pids and all(map(has_run, pids)) else None

    def has_run(each):
        with contextlib.suppress(OSError), open("/proc/%d/stat" % each, encoding="utf-8") as file:
            return int(file.read().rpartition(")")[2].split()[11]) >= seconds * os.sysconf("SC_CLK_TCK")
        return False
    return wait_for(found)


class TestBehindTheDashes:
    @pytest.mark.parametrize("launch", [
        lambda python, path: ["sh", "-c", "%s %s; true" % (python, path)],
        lambda python, path: ["timeout", "600", python, path],
        lambda python, path: ["env", "-u", "NOTHING", "setsid", "-w", python, path],
    ], ids=["shell", "timeout", "setsid"])
    def test_a_launcher(self, profile, script, executable, launch):
        """One Python alone has no frame of its process."""
        run = profile("-r", 499, command=launch(executable, script("app.py", BURN % 0.3)))
        assert run.count_name("burn")
        assert not run.count(lambda frame: frame.name.startswith("process "))

    def test_a_script(self, profile, script, executable):
        path = script("start.sh", "#!/bin/sh\ncd /\n%s %s\nexit 7\n" % (executable, script("app.py", BURN % 0.2)))
        run = profile("-r", 499, command=[path])
        assert run.count_name("burn") and "exited with status 7" in run.stderr

    def test_several_are_told_apart(self, profile, script, executable):
        one, other = script("one.py", BURN % 0.2), script("other.py", BURN % 0.2)
        run = profile("-r", 499, command=["sh", "-c", "%s %s & %s %s; wait" % (executable, one, executable, other)])
        roots = {frames[0].name for frames, _ in run.stacks if any(frame.name == "burn" for frame in frames)}
        assert len(roots) == 2 and all(root.startswith("process ") for root in roots), roots

    def test_the_title_of_several_is_the_command(self, profile, script, executable):
        path = script("app.py", BURN % 0.2)
        command = ["sh", "-c", "%s %s; %s %s" % (executable, path, executable, path)]
        run = profile.attempt("-r", 499, "-f", "text", "-o", "-", command=command)
        assert run.stdout.decode("utf-8").splitlines()[0] == " ".join(command)

    def test_what_it_leaves_behind_is_waited_for(self, profile, script, executable, tmp_path):
        """But not for what is no Python."""
        go = tmp_path / "go"
        path = script("app.py", "import os, time\nwhile not os.path.exists(%r): time.sleep(0.02)\n" % str(go) + BURN % 0.2)
        run = profile.start("-r", 499, command=["sh", "-c", "sleep 600 >/dev/null & %s %s & exit 0" % (executable, path)],
                            start_new_session=True)
        try:
            run.wait_said("the command has ended and left process")
            assert "app.py" in run.said()
            go.touch()
            assert run.load().count_name("burn")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)

    def test_no_python_at_all(self, profile):
        run = profile.attempt(command=["sh", "-c", "true; true"])
        assert run.status == NOT_PYTHON and "sh ran no Python" in run.stderr


class TestByPid:
    def test_a_shell_with_python_children(self, profile, script, executable):
        with running("sh", "-c", "%s %s; true" % (executable, script("app.py", BURN % 600))) as shell:
            child, = children(shell.pid)
            run = profile.attempt("-p", shell.pid, "-d", 600)
            assert run.status == NOT_PYTHON
            assert run.stderr == (
                "pybpfprof: process %d is not a Python process, but started Python process %d (app.py): use "
                "-p %d, or -s -p %d\n" % (shell.pid, child, child, shell.pid))

    def test_grandchildren(self, profile, script, executable):
        command = "%s %s & %s %s & wait" % ((executable, script("app.py", BURN % 600)) * 2)
        with running("sh", "-c", "sh -c '%s'; true" % command) as shell:
            inner, = children(shell.pid, 0)
            pids = sorted(wait_for(lambda: len(pids := children(inner)) == 2 and pids))
            run = profile.attempt("-p", shell.pid, "-d", 600)
            assert "started Python processes %d (app.py), %d (app.py): use -p %d,%d, or -s -p %d" % (
                *pids, *pids, shell.pid) in run.stderr

    def test_an_idle_master(self, profile, script, executable):
        """It is told of its workers, and -s has their samples under the master's title."""
        path = script("master.py", "import os, sys, time\nfor _ in range(2):\n    if not os.fork():\n"
                      + "".join("        %s\n" % line for line in (BURN % 600).splitlines())
                      + "time.sleep(600)\n")
        with running(executable, path) as master:
            workers = children(master.pid)
            assert len(workers) == 2
            run = profile.start("-p", master.pid, cpu=0.1, of=workers).load(NO_SAMPLE)
            assert "its 2 Python children used" in run.stderr and "add -s" in run.stderr
            assert run.samples == 0
            run = profile.attempt("-s", "-p", master.pid, "-f", "text", "-o", "-", cpu=0.3, of=workers)
            assert b"process %d: " % master.pid in run.stdout and b"master.py and others" in run.stdout

    def test_an_idle_process(self, profile, any_python, target):
        program = target(any_python, "idle.py")
        run = profile.start("-p", program.pid)
        run.wait_sampling()
        run.interrupt().load(NO_SAMPLE)
        assert "process %d used no CPU" % program.pid in run.stderr and "add -s" not in run.stderr

    def test_a_stopped_process(self, profile, any_python, target):
        program = target(any_python, "busy.py")
        os.kill(program.pid, signal.SIGSTOP)
        try:
            run = profile.start("-p", program.pid)
            run.wait_sampling()
            run.interrupt().load(NO_SAMPLE)
        finally:
            os.kill(program.pid, signal.SIGCONT)
        assert run.stderr.count("process %d is stopped by a signal" % program.pid) == 2

    @pytest.mark.parametrize("hierarchy, name, freeze, thaw", [
        ("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
        ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"), ("/sys/fs/cgroup", "cgroup.freeze", "1", "0")],
        ids=["v1", "hybrid", "v2"])
    def test_a_frozen_process(self, profile, any_python, target, hierarchy, name, freeze, thaw):
        if not os.path.exists(hierarchy + "/cgroup.procs"):
            pytest.skip("no such hierarchy is mounted here")
        program = target(any_python, "busy.py")
        folder = "%s/frozen-%d" % (hierarchy, program.pid)

        def write(file, text):
            with open("%s/%s" % (folder, file), "w", encoding="ascii") as setting:
                setting.write(text)
        os.mkdir(folder)
        try:
            write("cgroup.procs", str(program.pid))
            write(name, freeze)
            wait_for(lambda: is_frozen(folder))
            run = profile.start("-p", program.pid)
            run.wait_said("is stopped by its cgroup's freezer")
            run.wait_sampling()
            run.interrupt().load(NO_SAMPLE)
        finally:
            program.process.kill()
            write(name, thaw)
            program.process.wait()
            remove_group(folder)
        assert run.stderr.count("freezer") == 2


@pytest.mark.parametrize("number, ends", [(signal.SIGHUP, False), (signal.SIGTERM, True), (signal.SIGINT, True)],
                         ids=["hangup", "termination", "interrupt"])
def test_ignored_signals(profile, any_python, target, number, ends):
    """As nohup, and a shell's background jobs, start it."""
    program = target(any_python, "busy.py")
    run = profile.start("-p", program.pid, prefix=[
        sys.executable, "-S", "-c", "import os, signal, sys\nfor each in 1, 2, 15: signal.signal(each, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"])
    run.wait_sampling()
    wait_used(0.1, program.pid)
    os.kill(run.pid, number)
    if not ends:
        # It has taken what came before this, and goes on.
        with open("/proc/%d/status" % run.pid, encoding="ascii") as file:
            pending = next(int(line.split()[1], 16) for line in file if line.startswith("ShdPnd"))
        assert not pending & 1 << number - 1 and run.process.poll() is None
        run.interrupt()
    run.load()
