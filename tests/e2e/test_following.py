# SPDX-License-Identifier: BSD-2-Clause
"""Discovery and following: children, the programs that they execute, every Python of the machine.

Profiles of -a also hold other processes of the machine: a test looks only at processes that it has
started, by PID or program name.
"""

import collections
import glob
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import PATIENCE, PROGRAMS, children_of, cpu_seconds, missing, wait_for, wait_used
from embedding import dependencies
from pythons import RELEASE, find_pythons, own_and_fetched_pythons, own_pythons
from test_finding import REPLACED, REPLACED_S, check_replaced, go_replaced

# From this kernel on, the title of a process can be read when it exits.
TELLS_TITLES = (6, 16)

PROCESS = re.compile(r'process (\d+):"(.*)"', re.DOTALL)

# Labels of samples before a Python has started, and after it has ended.
NO_PYTHON = ("[Python is starting or has ended]", "[no Python on this thread]")


def process_of(frames):
    pid, command = PROCESS.fullmatch(frames[0].label).groups()
    return int(pid), command


def by_process(run):
    """{pid: [(frames, count), ...]}"""
    processes = {}
    for frames, count in run.stacks:
        processes.setdefault(process_of(frames)[0], []).append((frames[1:], count))
    return processes


def count(stacks, name):
    return sum(samples for frames, samples in stacks if any(frame.name == name for frame in frames))


def check_named(children, measured, share=0.99):
    """At least SHARE of the children's Python samples have names and lines."""
    of_python = [(frames, samples) for stacks in children for frames, samples in stacks
                 if frames[-1].label not in NO_PYTHON]
    others = collections.Counter()
    for frames, samples in of_python:
        if not all(frame.file and frame.line for frame in frames):
            others[frames[-1].label] += samples
    total = sum(samples for _, samples in of_python)
    measured("samples of processes of 0.1 s without a name", "%d of %d" % (sum(others.values()), total),
             "<= %g %%" % (100 * (1 - share)))
    assert sum(others.values()) <= (1 - share) * total, others


def others_like(pid):
    """The other processes with the command line of PID."""
    paths = {path: int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/cmdline")}
    command = command_line("/proc/%d/cmdline" % pid)
    return [other for path, other in paths.items() if other != pid and command_line(path) == command]


def command_line(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None


class TestExecMeanwhile:
    """A process may execute another program while the profiler reads it.  The BPF map then gets stale facts."""

    CHAINS, STAGES, SECONDS = 10, 4, 1
    CHAIN = ("import os, sys, time\n"
             "left = int(sys.argv[1])\n"
             "if left: os.execv(sys.executable, [sys.executable, '-S', '-E', __file__, str(left - 1)])\n"
             "def last_stage():\n"
             "    end = time.process_time() + %g\n"
             "    while time.process_time() < end:\n"
             "        sum(range(20000))\n"
             "        time.sleep(0.01)\n"
             "last_stage()\n")

    def test_chains(self, profile, tmp_path):
        """The last program of each chain is walked, whenever it was executed."""
        chain = tmp_path / "chain.py"
        chain.write_text(self.CHAIN % self.SECONDS)
        run = profile.start("-a", "-r", 999, "--comm", "chain.py")
        run.wait_sampling()
        # Preferably a Python whose libpython is a file of its own: the exec event does not name that.
        python = max(own_pythons(), key=lambda python: (python.name.endswith("-pyenv"), python.version)).path
        chains = []
        for _ in range(self.CHAINS):
            chains.append(subprocess.Popen([python, "-S", "-E", str(chain), str(self.STAGES)]))
            # Wait for the last stage.
            wait_for(lambda: chains[-1].poll() is not None
                     or (command_line("/proc/%d/cmdline" % chains[-1].pid) or b"").endswith(b"\0" + b"0\0"))
        for process in chains:
            process.wait(PATIENCE)
        run.interrupt().load()
        processes = by_process(run)
        assert [process.pid for process in chains
                if not count(processes.get(process.pid, []), "last_stage")] == []
        assert "do not add up" not in run.stderr


def family(target, python, how, seconds):
    return target(python, "family.py", how, seconds)


class TestChildren:
    """-s: children that are started in every way."""

    RATE = 499
    SECONDS = 0.6

    def follow(self, target, profile, python, how, seconds=SECONDS):
        parent = family(target, python, how, seconds)
        run = profile.start("-p", parent.pid, "-s", "-r", self.RATE)
        run.wait_sampling()
        parent.go()
        run.load()
        return parent, run, by_process(run)

    @pytest.mark.pythons(which=own_pythons)
    @pytest.mark.parametrize("how", ["fork", "fork_twice"])
    def test_fork(self, target, profile, python, how):
        """The child is known from its first sample on."""
        parent, run, processes = self.follow(target, profile, python, how)
        children = {pid: stacks for pid, stacks in processes.items()
                    if pid != parent.pid and count(stacks, "in_child")}
        assert len(children) == 1
        assert count(processes[parent.pid], "in_parent")
        assert not count(processes[parent.pid], "in_child")
        assert run.ledger["errors"]["not_known_yet"] == 0
        (stacks,) = children.values()
        # The child continues in the stack that called fork.
        assert all(frames[0].name == "<module>" for frames, _ in stacks if len(frames) > 1)

    @pytest.mark.pythons(which=own_and_fetched_pythons, since=(3, 4))
    @pytest.mark.parametrize("how", ["pool", "spawn", "forkserver"])
    def test_multiprocessing(self, target, profile, python, how):
        parent, run, processes = self.follow(target, profile, python, how)
        workers = [stacks for pid, stacks in processes.items() if count(stacks, "in_child")]
        assert parent.pid in processes
        assert 1 <= len(workers) <= 2

    @pytest.mark.pythons(which=own_pythons)
    @pytest.mark.parametrize("how", ["exec", "shell"])
    def test_exec(self, target, profile, python, how):
        parent, run, processes = self.follow(target, profile, python, how, 1)
        children = {pid: stacks for pid, stacks in processes.items() if count(stacks, "in_child")}
        (pid, stacks), = children.items()
        assert pid != parent.pid
        # The command line is that of the Python, not that of the shell.
        commands = {process_of(frames)[1] for frames, _ in run.stacks
                    if process_of(frames)[0] == pid}
        assert any("family.py child" in command for command in commands)

    def test_short_lived_children(self, target, profile, any_python):
        """Children with 0.1 s of work each.  With a static Python, all but the first one are walked from
        their exec on."""
        lives = 12
        _, run, processes = self.follow(target, profile, any_python, "storm", lives)
        children = [stacks for stacks in processes.values() if count(stacks, "in_child")]
        assert 1 <= len(children) <= lives
        names = {frame.name for stacks in children for frames, _ in stacks for frame in frames}
        assert {"<module>", "in_child"} <= names

    @pytest.mark.prove("truth")
    @pytest.mark.alone
    def test_200_short_lived_children(self, target, profile, any_python, measured):
        """At least 99 % of their Python samples have names and lines."""
        lives = 200
        _, run, processes = self.follow(target, profile, any_python, "storm", lives)
        children = [stacks for stacks in processes.values() if count(stacks, "in_child")]
        assert len(children) >= 0.99 * lives
        check_named(children, measured)
        assert sum(count(stacks, "in_child") for stacks in children) >= 0.9 * lives * 0.1 * self.RATE

    def test_a_child_that_ends_soon_has_its_command(self, target, profile, any_python):
        """/proc no longer has its command line when user space reads it."""
        parent, run, processes = self.follow(target, profile, any_python, "brief", 200)
        assert any(count(stacks, "in_child") for pid, stacks in processes.items() if pid != parent.pid)
        commands = {frames[0].label.partition(":")[2] for frames, _ in run.stacks}
        assert len(commands) == 1, commands
        assert "family.py brief 200" in commands.pop()

    def test_a_child_that_execs_soon_has_its_first_command(self, target, profile, any_python):
        """/proc already has the new program's command line when user space reads it."""
        _, run, _ = self.follow(target, profile, any_python, "brief_exec", 50)
        children = {process_of(frames) for frames, _ in run.stacks
                    if any(frame.name == "in_child" for frame in frames)}
        assert children
        assert [command for _, command in children if "family.py brief_exec" not in command] == []

    def test_a_late_title(self, target, profile, any_python):
        """A title that is set after the first sample applies to all samples."""
        parent = target(any_python, "titled_later.py", "gunicorn: worker")
        run = profile.start("-p", parent.pid, "-s", "-r", self.RATE)
        run.wait_sampling()
        parent.go()
        wait_for(lambda: children_of(parent.pid))
        (worker,) = children_of(parent.pid)
        wait_used(0.3, worker)
        parent.go()
        wait_used(0.3, worker)
        run.interrupt().load()
        assert run.count_name("untitled") and run.count_name("titled")
        assert {process_of(frames)[1] for frames, _ in run.stacks
                if process_of(frames)[0] == worker} == {"gunicorn: worker"}

    @pytest.mark.parametrize("title", ["server", "gunicorn: worker [shop:%s]" % ("x" * 120)])
    def test_the_last_title_of_an_ended_process(self, title, target, profile, any_python):
        """The process is gone from /proc when user space reads it.  A title that is longer than the command
        line continues in the environment."""
        tells_titles = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= TELLS_TITLES
        parent = target(any_python, "titled_later.py", "none", environment={"TITLE": title})
        run = profile.start("-p", parent.pid, "-s", "-r", self.RATE)
        run.wait_sampling()
        run.process.send_signal(signal.SIGSTOP)
        parent.go()
        wait_for(lambda: children_of(parent.pid))
        (worker,) = children_of(parent.pid)
        wait_used(0.1, worker)
        parent.go()
        wait_used(0.1, worker)
        parent.end()
        wait_used(1, worker)
        run.process.send_signal(signal.SIGCONT)
        run.load()
        assert run.count_name("untitled") and run.count_name("titled")
        titles = {process_of(frames)[1] for frames, _ in run.stacks if process_of(frames)[0] == worker}
        # On older kernels, the profile has the last title that was read.
        assert titles == {title} if tells_titles else len(titles) == 1

    def profile_with_no_room(self, profile, parent, wait):
        """The profiler is stopped until WAIT() has returned: stacks fill the ring buffer, and the events of
        PARENT's processes are dropped."""
        run = profile.start("-p", parent.pid, "-s", "-r", 1999)
        run.wait_sampling()
        run.process.send_signal(signal.SIGSTOP)
        parent.go()
        wait()
        run.process.send_signal(signal.SIGCONT)
        run.load()
        assert run.ledger["untold_processes"] > 0
        assert run.count_name("in_child")

    @pytest.mark.parametrize("how", ["deeply", "deeply_twice"])
    def test_a_fork_whose_event_was_dropped(self, target, profile, any_python, how):
        """The profiler then scans all processes.  Only BPF knows that a daemon is a target's child."""
        parent = family(target, any_python, how, 1)
        self.profile_with_no_room(profile, parent, lambda: wait_for(lambda: any(
            (cpu_seconds(pid) or 0) > 0.1 for pid in others_like(parent.pid))))

    def test_an_exec_whose_event_was_dropped(self, target, profile, any_python):
        """The process is known as another program."""
        program = family(target, any_python, "deeply_exec", 1)

        def wait():
            wait_for(lambda: b"child" in command_line("/proc/%d/cmdline" % program.pid))
            wait_used(0.1, program.pid)
        self.profile_with_no_room(profile, program, wait)

    def test_children_are_not_followed_without_the_option(self, target, profile, any_python):
        parent = family(target, any_python, "fork", self.SECONDS)
        run = profile.start("-p", parent.pid, "-r", self.RATE)
        run.wait_sampling()
        parent.go()
        run.load()
        assert run.count_name("in_parent")
        assert not run.count_name("in_child")

    def test_children_of_a_command(self, profile, any_python):
        """The command is a shell, which is not a Python itself."""
        code = [any_python.path, os.path.join(PROGRAMS, "family.py"), "child", "0.5"]
        run = profile("-s", "-r", self.RATE, command=["sh", "-c", '"$@"; true', "sh", *code])
        assert run.count_name("in_child")
        assert all(PROCESS.fullmatch(frames[0].label) for frames, _ in run.stacks)

    def test_processes_that_ended_before_they_were_known(self, profile, any_python, tmp_path):
        """Each runs a new file, and is gone when user space looks: it is in no stack, but is named.
        The Python runs for 2 s, because all samples may wait for user space on a busy machine."""
        paths = [tmp_path / str(number) / "short_of_this_test" for number in range(300)]
        for path in paths:
            path.parent.mkdir()
            shutil.copy("/bin/true", path)
        python = [any_python.path, os.path.join(PROGRAMS, "family.py"), "child", "2"]
        run = profile("-s", "-r", 999, command=[
            "sh", "-c", 'for each; do case $each in *_test) $each;; esac; done; shift 300; "$@"; true', "sh",
            *map(str, paths), *python])
        named = run.ledger["unknown_commands"]["short_of_this_test"]
        assert 0 < named <= run.ledger["samples_of_unknown_processes"]
        assert re.search(r"in no stack, .*\bshort_of_this_test %d\b" % named, run.stderr)
        assert run.count_name("in_child")

    def test_children_of_another_program(self, profile, any_python):
        shell = subprocess.Popen(
            ["sh", "-c", 'read line; "$@"; true', "sh", any_python.path,
             os.path.join(PROGRAMS, "family.py"), "child", "0.5"], stdin=subprocess.PIPE)
        try:
            run = profile.start("-p", shell.pid, "-s", "-r", self.RATE)
            run.wait_sampling()
            shell.stdin.write(b"\n")
            shell.stdin.close()
            run.load()
        finally:
            shell.wait()
        assert run.count_name("in_child")


class TestAll:
    """-a"""

    RATE = 199

    def test_running_and_new_pythons(self, target, profile, any_python):
        """Pythons that were started before the recording and during it."""
        pythons = [own_pythons()[0], any_python, own_pythons()[-1]]
        before = [target(python, "busy.py") for python in pythons]
        run = profile.start("-a", "-r", self.RATE)
        run.wait_sampling()
        later = [target(python, "busy.py") for python in pythons]
        wait_used(0.5, *(one.pid for one in before + later))
        run.interrupt().load()
        processes = by_process(run)
        for one in before + later:
            assert count(processes[one.pid], "spin"), one.pid

    def test_neither_the_profiler_nor_other_programs(self, profile, target, any_python):
        spinner = subprocess.Popen(["sh", "-c", "while :; do :; done"])
        busy = target(any_python, "busy.py")
        try:
            run = profile.start("-a", "-r", self.RATE, cpu=0.5, of=[busy.pid, spinner.pid])
            pid = run.pid
            run.load()
        finally:
            spinner.kill()
            spinner.wait()
        processes = by_process(run)
        assert busy.pid in processes
        assert spinner.pid not in processes and pid not in processes

    def test_chosen_by_name(self, profile, target, any_python):
        wanted, other = (target(any_python, program) for program in ("busy.py", "parked.py"))
        run = profile("-a", "--comm", "busy*", "-r", self.RATE, cpu=0.5, of=[wanted.pid])
        processes = by_process(run)
        assert wanted.pid in processes and other.pid not in processes
        # A recording without any sample has another status.
        another = target(any_python, "deep.py")
        run = profile("-a", "--exclude", "comm=busy*", "-r", self.RATE, cpu=0.5, of=[wanted.pid, another.pid])
        assert wanted.pid not in by_process(run)


def of_one_file_and_several():
    """A static Python, one of this machine's with libpython, and a fetched one."""
    kinds = {}
    for python in own_and_fetched_pythons():
        kind = "fetched" if python.root else "libpython" in dependencies(python.path)
        kinds[kind] = python
    return list(kinds.values())


class TestExecuted:
    """-a: new Pythons with 0.1 s of work each."""

    RATE = 997
    LIVES, SECONDS = 200, 0.1

    @pytest.mark.prove("truth")
    @pytest.mark.alone
    @pytest.mark.pythons(which=of_one_file_and_several)
    @pytest.mark.parametrize("at_a_time", (1, os.cpu_count()))
    def test_200_short_lived_processes(self, profile, python, at_a_time, measured):
        """At least 99 % of their Python samples have names and lines; 95 % where they leave no CPU to the
        profiler.  The number of samples matches their CPU time."""
        run = self.record(profile, self.RATE, at_a_time, *python.command, "-S", "-E", "-c", IN_CHILD,
                          str(self.SECONDS))
        children = [stacks for stacks in by_process(run).values() if count(stacks, "in_child")]
        assert len(children) >= 0.99 * self.LIVES
        check_named(children, measured, 0.99 if at_a_time == 1 else 0.95)
        assert sum(count(stacks, "in_child") for stacks in children) >= \
            0.9 * self.LIVES * self.SECONDS * self.RATE

    @pytest.mark.prove("truth")
    def test_nothing_is_lost_where_samples_interrupt_an_exec(self, profile, any_python):
        """At this rate, samples fall between exec making a process a target and the end of that exec."""
        run = self.record(profile, 20000, os.cpu_count(), *any_python.command, "-S", "-E", "-c", "pass")
        assert run.samples > 10 * self.LIVES
        assert run.ledger["lost"] == 0

    def test_a_process_that_execs_before_it_is_known(self, profile, any_python, tmp_path):
        """A new file, whose process has executed another one when user space looks.  The Python may be gone, too; if
        it was the only one, there are no samples."""
        path = tmp_path / "other_of_this_test"
        shutil.copy("/bin/sh", path)
        run = profile.start("-a", "-r", self.RATE)
        run.wait_sampling()
        run.process.send_signal(signal.SIGSTOP)
        subprocess.run(
            [path, "-c", 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec "$@"', path, *any_python.command,
             "-S", "-E", "-c", "pass"], check=True)
        run.process.send_signal(signal.SIGCONT)
        run.interrupt().load(status=None)
        assert run.ledger["unknown_commands"]["other_of_this_test"] > 0

    def record(self, profile, rate, at_a_time, *command):
        """Records LIVES runs of COMMAND, AT_A_TIME of them in parallel."""
        storm = 'read line; for i in $(seq %d); do %s "$@"; wait; done' % (self.LIVES // at_a_time,
                                                                         '"$@" & ' * (at_a_time - 1))
        shell = subprocess.Popen(["sh", "-c", storm, "sh", *command], stdin=subprocess.PIPE)
        try:
            run = profile.start("-a", "-r", rate)
            run.wait_sampling()
            shell.stdin.write(b"\n")
            shell.stdin.close()
            shell.wait(PATIENCE)
        finally:
            shell.kill()
            shell.wait()
        return run.interrupt().load()


IN_CHILD = ("import sys, time\n"
            "def in_child():\n"
            "    end = time.process_time() + float(sys.argv[1])\n"
            "    while time.process_time() < end: sum(range(1000))\n"
            "in_child()")


@pytest.fixture
def files(tmp_path):
    """[path, home, path, home] of two static Pythons of different versions that run here.  The
    executables have the same size."""
    found = {}
    for python in find_pythons():
        path, home = python.root + python.path, python.root + "/usr"
        if path.startswith(home) and python.kind == RELEASE and not subprocess.run(
                [path, "-c", IN_CHILD, "0"], env=dict(os.environ, PYTHONHOME=home),
                stderr=subprocess.DEVNULL).returncode and "libpython" not in dependencies(path):
            copy = str(tmp_path / ("python-%d.%d" % python.version[:2]))
            found[python.version[:2]] = [shutil.copy(path, copy), home]
    if len(found) < 2:
        missing("second Python that is one file")
    chosen = found[min(found)] + found[max(found)]
    size = max(map(os.path.getsize, chosen[::2]))
    for path in chosen[::2]:
        os.truncate(path, size)
    return chosen


class TestOverwritten:
    """Another Python is written into the file of a known one: the inode and the size stay the same."""

    RATE = 499
    SECONDS = 1
    SCRIPT = ('read line; PYTHONHOME="$2" "$1" -c "$5" %g; cat "$3" >"$1"; '
              'PYTHONHOME="$4" "$1" -c "$5" %g' % (SECONDS, SECONDS + 0.1))

    @pytest.mark.parametrize("everything", [True, False], ids=["all", "children"])
    def test_in_place(self, files, profile, everything):
        shell = subprocess.Popen(["sh", "-c", self.SCRIPT, "sh", *files, IN_CHILD],
                                 stdin=subprocess.PIPE)
        try:
            scope = ("-a",) if everything else ("-p", shell.pid, "-s")
            run = profile.start(*scope, "-r", self.RATE)
            run.wait_sampling()
            shell.stdin.write(b"\n")
            shell.stdin.close()
            if everything:
                shell.wait(PATIENCE)
                run.interrupt()
            run.load()
        finally:
            shell.kill()
            shell.wait()
        of_either = {seconds: [(frames, samples) for frames, samples in run.stacks
                               if process_of(frames)[1].endswith(" %g" % seconds)]
                     for seconds in (self.SECONDS, self.SECONDS + 0.1)}
        for seconds, stacks in of_either.items():
            # With the former Python's offsets, the walk would not find this frame.
            assert count(stacks, "in_child"), seconds


def test_another_python_takes_the_files_name(files, target, profile):
    """Another Python replaces the file during the recording.  The process continues, forks, and executes it."""
    path, home, new, new_home = files
    words = 'echo ready; read line; PYTHONHOME="$1"; export PYTHONHOME; shift; exec "$@"'
    program = target.start(["sh", "-c", words, "sh", home, path, REPLACED, str(REPLACED_S), path, new_home])

    def runs_its_file():
        return os.readlink("/proc/%d/exe" % program.pid) == path

    run = profile.start("-p", program.pid, "-s", "-r", 999)
    run.wait_sampling()
    program.go()
    wait_for(runs_its_file)
    go_replaced(program, lambda: os.rename(new, path))
    wait_for(runs_its_file)
    wait_used(0.5, program.pid)
    run.interrupt().load()
    check_replaced(run)
    assert run.count(lambda frame: (frame.name, frame.file, frame.line) == ("leaf", "busy.py", 8)) > 0


@pytest.mark.prove("truth")
class TestNumbersAgain:
    """PIDs and TIDs are reused.  The profiler runs in the PID namespace, which has only few."""

    NUMBERS = 310
    SECONDS_MAX = 120
    # Before this version, pid_max is the limit of the whole machine.
    SINCE = (6, 14)
    FEW = 'echo %d >/proc/sys/kernel/pid_max; "$0" "$1" & program=$!; shift; "$@" & ' \
        'wait $program; kill $!; wait $!' % NUMBERS

    def with_few(self, require, python, program):
        """The prefix of a command that runs until PROGRAM has ended."""
        if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < self.SINCE:
            pytest.skip("numbers of PID namespaces are limited one by one from Linux 6.14 on")
        return [require("unshare"), "-m", "-p", "-f", "--mount-proc", "sh", "-c", self.FEW, python.path, os.path.join(PROGRAMS, program)]

    def test_reused_tids(self, profile, any_python, require):
        """A thread does not get the samples of an earlier one with its TID."""
        prefix = self.with_few(require, any_python, "threads_again.py")
        run = profile("-a", "-t", "-r", 999, "-d", self.SECONDS_MAX, prefix=prefix)
        named, numbers = 0, {}
        for frames, samples in run.stacks:
            work = {frame.name for frame in frames if re.fullmatch(r"spin_\d+", frame.name)}
            thread = re.fullmatch(r"thread \((\d+)\): (spin_\d+)", frames[1].label)
            if work and thread:
                assert work == {thread[2]}, frames
                named += samples
                numbers.setdefault(thread[1], set()).add(thread[2])
        assert named > 0
        assert any(len(names) > 1 for names in numbers.values()), numbers

    def test_reused_pids(self, profile, any_python, require):
        """A process does not get the command or the stacks of an earlier one with its PID."""
        prefix = self.with_few(require, any_python, "reborn.py")
        run = profile("-a", "-r", 999, "-d", self.SECONDS_MAX, prefix=prefix)
        children = {}
        for frames, _ in run.stacks:
            pid, command = process_of(frames)
            work = {frame.name for frame in frames if re.fullmatch(r"forked|child_\d+", frame.name)}
            child = re.search(r"reborn\.py child (\d+)", command)
            assert pid <= self.NUMBERS
            assert work <= ({"child_" + child[1]} if child else {"forked"}), frames
            if child:
                children.setdefault(pid, set()).add(child[1])
        assert any(len(known) > 1 for known in children.values()), children

    # "child 0" runs first, so that the profiler knows the Python's file.
    LATE = 'work="$0 -S $1 child"; shift; "$@" & profiler=$!; ' \
        "until grep -q 'NoNewPrivs:.1' /proc/$profiler/status; do sleep 0.1; done; $work 0; sleep 0.5; " \
        "kill -STOP $profiler; for next in \"$work 1\" 'sleep 1000 &'; do " \
        "echo 4000 >/proc/sys/kernel/ns_last_pid; eval \"$next\"; done; sleep 0.2; " \
        "kill -CONT $profiler; sleep 0.5; kill -INT $profiler; wait $profiler"

    def test_a_late_event_of_an_executed_program(self, profile, any_python, require):
        """When user space looks, a live process has the PID.  The ended one keeps its own command."""
        prefix = [require("unshare"), "-m", "-p", "-f", "--mount-proc", "sh", "-c", self.LATE,
                  any_python.path, os.path.join(PROGRAMS, "reborn.py")]
        run = profile("-a", "-r", 999, "-d", self.SECONDS_MAX, prefix=prefix)
        found = {process_of(frames) for frames, _ in run.stacks
                 if any(frame.name == "child_1" for frame in frames)}
        assert [pid for pid, _ in found] == [4001], found
        assert re.search(r"reborn\.py child 1$", found.pop()[1])

    def test_a_late_event_of_a_forked_child(self, profile, any_python, require):
        """The same for a forked child, which has its parent's command."""
        prefix = [require("unshare"), "-m", "-p", "-f", "--mount-proc", any_python.path,
                  os.path.join(PROGRAMS, "heir.py")]
        run = profile("-a", "-r", 999, "-d", self.SECONDS_MAX, prefix=prefix)
        found = {process_of(frames) for frames, _ in run.stacks
                 if any(frame.name == "forked" for frame in frames)}
        assert [pid for pid, _ in found] == [4001], found
        assert "heir.py" in found.pop()[1]
