# SPDX-License-Identifier: BSD-2-Clause
"""The Python to profile is a child: of the command after --, or of the process of -p."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys

import pytest

from conftest import children_of, cpu_seconds, remove_group, wait_for, wait_used

NOT_PYTHON, NO_SAMPLE = 3, 5
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207

BURN = "import time\ndef burn():\n    end = time.process_time() + %s\n    while time.process_time() < end: sum(range(1000))\nburn()\n"


@pytest.fixture
def script(tmp_path):
    """script(NAME, TEXT): the path of an executable file."""
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
    """Runs COMMAND, and kills its process group at the end."""
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


def burning(pid, count=1):
    """The COUNT processes that PID has started, once each has used some CPU time."""
    def found():
        pids = sorted(children_of(pid))
        return len(pids) == count and all((cpu_seconds(each) or 0) >= 0.05 for each in pids) and pids
    return wait_for(found)


def wait_state(pid, state):
    def is_in_it():
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == state
    wait_for(is_in_it)


class TestBehindTheDashes:
    @pytest.mark.parametrize("launch", [
        lambda python, path: ["sh", "-c", "%s %s; true" % (python, path)],
        lambda python, path: ["timeout", "600", python, path],
        lambda python, path: ["env", "-u", "NOTHING", "setsid", "-w", python, path],
    ], ids=["shell", "timeout", "setsid"])
    def test_a_launcher(self, profile, script, executable, launch):
        """A single Python has no process frame."""
        run = profile("-r", 499, command=launch(executable, script("app.py", BURN % 0.3)))
        assert run.count_name("burn")
        assert not run.count(lambda frame: frame.name.startswith("process "))

    def test_a_script(self, profile, script, executable):
        path = script("start.sh", "#!/bin/sh\ncd /\n%s %s\nexit 7\n" % (executable, script("app.py", BURN % 0.2)))
        run = profile("-r", 499, command=[path])
        assert run.count_name("burn") and "exited with status 7" in run.stderr

    def test_several_pythons_have_process_frames(self, profile, script, executable):
        one, other = script("one.py", BURN % 0.2), script("other.py", BURN % 0.2)
        run = profile("-r", 499, command=["sh", "-c", "%s %s & %s %s; wait" % (executable, one, executable, other)])
        roots = {frames[0].name for frames, _ in run.stacks if any(frame.name == "burn" for frame in frames)}
        assert len(roots) == 2 and all(root.startswith("process ") for root in roots), roots

    def test_the_title_of_several_is_the_command(self, profile, script, executable):
        path = script("app.py", BURN % 0.2)
        command = ["sh", "-c", "%s %s; %s %s" % (executable, path, executable, path)]
        run = profile.attempt("-r", 499, "-f", "text", "-o", "-", command=command)
        assert run.stdout.decode("utf-8").splitlines()[0] == " ".join(command)

    def test_pythons_that_outlive_the_command_are_waited_for(self, profile, script, executable, tmp_path):
        """Other programs are not, nor is a Python that was not identified before the command's end: then retry."""
        def waits_for_it():
            go = tmp_path / "go"
            go.unlink(missing_ok=True)
            path = script("app.py", "import os, time\nwhile not os.path.exists(%r): time.sleep(0.02)\n" % str(go) + BURN % 0.2)
            run = profile.start("-r", 499, command=["sh", "-c", "sleep 600 >/dev/null & %s %s & exit 0" % (executable, path)],
                                start_new_session=True)
            try:
                wait_for(lambda: "the command has ended and left process" in run.said() or run.process.poll() is not None)
                go.touch()
                wait_for(lambda: run.process.poll() is not None)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)
            return "app.py" in run.said() and run.process.returncode == 0 and run.load().count_name("burn")
        wait_for(waits_for_it)

    def test_no_python_at_all(self, profile):
        run = profile.attempt(command=["sh", "-c", "true; true"])
        assert run.status == NOT_PYTHON and "sh ran no Python" in run.stderr


class TestByPid:
    def test_a_shell_with_python_children(self, profile, script, executable):
        with running("sh", "-c", "%s %s; true" % (executable, script("app.py", BURN % 600))) as shell:
            child, = burning(shell.pid)
            run = profile.attempt("-p", shell.pid, "-d", 600)
            assert run.status == NOT_PYTHON
            assert run.stderr == (
                "pybpfprof: process %d is not a Python process, but started Python process %d (app.py): use "
                "-p %d, or -s -p %d\n" % (shell.pid, child, child, shell.pid))

    def test_grandchildren(self, profile, script, executable):
        command = "%s %s & %s %s & wait" % ((executable, script("app.py", BURN % 600)) * 2)
        with running("sh", "-c", "sh -c '%s'; true" % command) as shell:
            inner, = wait_for(lambda: children_of(shell.pid))
            pids = burning(inner, 2)
            run = profile.attempt("-p", shell.pid, "-d", 600)
            assert "started Python processes %d (app.py), %d (app.py): use -p %d,%d, or -s -p %d" % (
                *pids, *pids, shell.pid) in run.stderr

    def test_an_idle_master(self, profile, script, executable):
        """The profiler mentions its workers.  With -s, their samples have the master's title."""
        path = script("master.py", "import os, sys, time\nfor _ in range(2):\n    if not os.fork():\n"
                      + "".join("        %s\n" % line for line in (BURN % 600).splitlines())
                      + "time.sleep(600)\n")
        with running(executable, path) as master:
            workers = burning(master.pid, 2)
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
            wait_state(program.pid, "T")
            run = profile.start("-p", program.pid)
            run.wait_sampling()
            run.interrupt().load(NO_SAMPLE)
        finally:
            os.kill(program.pid, signal.SIGCONT)
        assert run.stderr.count("process %d is stopped by a signal" % program.pid) == 2

    def test_a_process_in_a_debugger(self, profile, any_python, target):
        """The debugger is the test's own process."""
        program = target(any_python, "busy.py")
        trace = ctypes.CDLL(None, use_errno=True).ptrace
        trace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        assert trace(PTRACE_SEIZE, program.pid, None, None) == 0, ctypes.get_errno()
        try:
            assert trace(PTRACE_INTERRUPT, program.pid, None, None) == 0
            wait_state(program.pid, "t")
            run = profile.start("-p", program.pid)
            run.wait_sampling()
            run.interrupt().load(NO_SAMPLE)
        finally:
            # As long as it is traced, a wait for its end would return at its stop.
            assert trace(PTRACE_DETACH, program.pid, None, None) == 0, ctypes.get_errno()
        assert run.stderr.count("process %d is stopped by a debugger" % program.pid) == 2

    def test_a_master_that_wakes_now_and_then(self, profile, script, executable):
        """Like gunicorn's: it uses a little CPU time, and starts its workers by exec."""
        worker = script("worker.py", BURN % 600)
        path = script("master.py", "import subprocess, time\nsubprocess.Popen([%r, %r])\n"
                      "while True: time.sleep(0.02)\n" % (executable, worker))
        with running(executable, path) as master:
            workers = burning(master.pid)
            run = profile.start("-p", master.pid, "-r", 0.1, cpu=0.1, of=workers).load(NO_SAMPLE)
            assert "its 1 Python child used" in run.stderr and "add -s" in run.stderr

    @pytest.mark.parametrize("hierarchy, name, freeze, thaw", [
        case for case in (("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"),
                          ("/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"),
                          ("/sys/fs/cgroup", "cgroup.freeze", "1", "0")) if os.path.exists(case[0] + "/cgroup.procs")])
    def test_a_frozen_process(self, profile, any_python, target, hierarchy, name, freeze, thaw):
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
    """The profiler inherits ignored signals, as from nohup or as a shell's background job."""
    program = target(any_python, "busy.py")
    run = profile.start("-p", program.pid, prefix=[
        sys.executable, "-S", "-c", "import os, signal, sys\nfor each in 1, 2, 15: signal.signal(each, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"])
    run.wait_sampling()
    wait_used(0.1, program.pid)
    os.kill(run.pid, number)
    if not ends:
        # The signal is not pending, and the recording goes on.
        with open("/proc/%d/status" % run.pid, encoding="ascii") as file:
            pending = next(int(line.split()[1], 16) for line in file if line.startswith("ShdPnd"))
        assert not pending & 1 << number - 1 and run.process.poll() is None
        run.interrupt()
    run.load()
