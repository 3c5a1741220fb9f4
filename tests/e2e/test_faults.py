# SPDX-License-Identifier: BSD-2-Clause
"""Faults: the profiler is killed, stopped or interrupted, or is short of memory or of descriptors; its
target is stopped."""

import itertools
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest

from agents import end
from conftest import PATIENCE, PROGRAMS, cpu_seconds, wait_for, wait_used
from containers import innermost
from test_nmi_safety import descriptors

# The allocations that fail in turn: each of the first ones, then fewer and fewer.
FAILING_FIRST, FAILING_FACTOR = 4, 2


def test_a_killed_profiler_leaves_nothing_in_the_kernel(any_python, target, profile, require):
    bpftool = require("bpftool")
    run = profile.start("-p", target(any_python, "busy.py").pid, "-d", 60, "-r", 999)
    run.wait_sampling()
    found = {(kind, part[key].strip()) for part in descriptors(run.pid)
             for kind, key in (("prog", "prog_id"), ("map", "map_id"), ("link", "link_id"))
             if key in part}
    assert {kind for kind, _ in found} == {"prog", "map", "link"}
    run.process.kill()
    run.process.wait()
    wait_for(lambda: all(subprocess.run([bpftool, kind, "show", "id", number], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, check=False).returncode
                         for kind, number in found))


def test_profiler_stopped_for_a_while(any_python, target, profile):
    """The kernel goes on sampling.  The profile has the samples that it took meanwhile."""
    pid = target(any_python, "busy.py").pid
    run = profile.start("-p", pid, "-r", 999)
    run.wait_sampling()
    run.process.send_signal(signal.SIGSTOP)
    wait_used(1, pid)
    run.process.send_signal(signal.SIGCONT)
    run.interrupt().load()
    assert run.ledger["lost"] == 0 and run.count_name("spin") > 0


class TestInterrupted:
    """System calls fail with EINTR and are retried: the profile is complete."""

    SECONDS = 1
    RATE = 999

    def check(self, run):
        run.load()
        assert run.ledger["lost"] == 0
        assert run.ledger["unreadable_processes"] == run.ledger["cpus_not_sampled"] == 0
        assert {frame.file for frames, _ in run.stacks for frame in frames
                if frame.name == "in_child"} == {"family.py"}

    @pytest.mark.parametrize("every", [2, 3, 7])
    def test_interrupted_calls(self, any_python, target, profile, binary, every):
        preloaded = os.path.join(os.path.dirname(binary), "interrupted.so")
        assert os.path.exists(preloaded), "make unit-tests builds it"
        parent = target(any_python, "family.py", "exec", self.SECONDS)
        run = profile.start("-p", parent.pid, "-s", "-r", self.RATE,
                            env=dict(os.environ, LD_PRELOAD=preloaded, INTERRUPTED=str(every)))
        run.wait_sampling()
        parent.go()
        self.check(run)

    def test_storm_of_signals(self, any_python, target, profile):
        """The profiler is stopped and continued all the time, but not while it loads its BPF program: each
        signal would restart the verifier."""
        parent = target(any_python, "family.py", "exec", self.SECONDS)
        run = profile.start("-p", parent.pid, "-s", "-r", self.RATE)
        run.wait_sampling()
        parent.go()
        while run.process.poll() is None:
            for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGWINCH):
                run.process.send_signal(number)
                time.sleep(0.002)
        self.check(run)


def stop(program):
    program.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, program.pid, os.WSTOPPED)


def test_target_stopped_for_a_while(any_python, target, profile):
    program = target(any_python, "busy.py")
    run = profile.start("-p", program.pid, "-r", 999)
    run.wait_sampling()
    stop(program)
    program.process.send_signal(signal.SIGCONT)
    wait_used(0.5, program.pid)
    assert run.interrupt().load().count_name("spin") > 0


def test_target_stopped_all_the_time(any_python, target, profile):
    """Its memory can be read, but there is nothing to sample."""
    program = target(any_python, "busy.py")
    stop(program)
    run = profile.start("-p", program.pid, "-d", 0.5).finish()
    assert run.status in (0, 5), run.stderr


def test_slow_disk(any_python, target, profile, binary):
    """Each flush, close and rename takes a second.  The profile has the samples up to the start of writing, and
    no later ones.  Signals do not change that."""
    preloaded = os.path.join(os.path.dirname(binary), "slow_disk.so")
    assert os.path.exists(preloaded), "make unit-tests builds it"
    pid = target(any_python, "busy.py").pid
    run = profile.start("-p", pid, "-r", 999, env=dict(os.environ, LD_PRELOAD=preloaded, SLOW_DISK="1"))
    run.wait_sampling()
    wait_used(0.5, pid)
    run.interrupt()
    folder = os.path.dirname(run.output)
    wait_for(lambda: os.listdir(folder))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        run.process.send_signal(number)
        wait_used(0.1, pid)
    run.load()
    assert run.ledger["lost"] == 0 and run.count_name("spin") > 0
    # The profile and the ledger are each flushed, closed and renamed: 6 s.
    assert run.ledger["duration_s"] + 6 < run.seconds
    assert sorted(os.listdir(folder)) == ["profile.folded", "stats.json"]


class TestOpenFiles:
    """The profiler cannot open files, for a while or until the end, while new processes start."""

    RATE = 499
    SECONDS = 3

    @pytest.fixture
    def copied_python(self, any_python, tmp_path):
        """A Python whose file no other process runs: the profiler has to read it."""
        return [shutil.copy(any_python.path, str(tmp_path / "copied_python"))]

    def start(self, copied_python, target, profile, everything):
        """The process that starts a Python while the profiler cannot open files, and the run."""
        parent = target.start([*copied_python, os.path.join(PROGRAMS, "family.py"), "exec",
                               str(self.SECONDS)])
        self.scope = ("-a",) if everything else ("-p", parent.pid, "-s")
        run = profile.start(*self.scope, "-r", self.RATE)
        run.wait_sampling()
        return parent, run

    def allow(self, run, files):
        resource.prlimit(run.pid, resource.RLIMIT_NOFILE, (files, self.found[1]))

    def begin(self, parent, run):
        """Lowers the limit, and starts a child that the profiler cannot read."""
        self.found = resource.prlimit(run.pid, resource.RLIMIT_NOFILE)
        self.allow(run, max(map(int, os.listdir("/proc/%d/fd" % run.pid))) // 2)
        self.begin_child(parent)

    def begin_child(self, parent):
        """Starts the child, and returns once it has done a third of its work."""
        parent.go()
        wait_for(lambda: (cpu_seconds(innermost(parent.pid)) or 0) > self.SECONDS / 3
                 and innermost(parent.pid) != parent.pid)

    def check(self, parent, run):
        """All samples are accounted for, and the profiler has warned once."""
        if "-a" in self.scope:
            parent.process.wait(PATIENCE)
            run.interrupt()
        run.load()
        assert run.ledger["lost"] == run.ledger["cpus_not_sampled"] == 0
        # The second number: processes that ended before the profiler could read them.
        assert (run.ledger["errors"]["not_known_yet"] +
                run.ledger["samples_of_unknown_processes"]) > 0
        said = [line for line in run.stderr.splitlines() if "cannot open more files" in line]
        assert len(said) == 1 and "prlimit --nofile=" in said[0] and str(run.pid) in said[0]

    @pytest.mark.parametrize("everything", [True, False], ids=["all", "children"])
    def test_for_a_while(self, copied_python, target, profile, everything):
        parent, run = self.start(copied_python, target, profile, everything)
        self.begin(parent, run)
        self.allow(run, self.found[0])
        self.check(parent, run)
        assert run.count_name("in_child") > 0

    def test_to_the_end(self, copied_python, target, profile):
        """The profile is written all the same."""
        parent, run = self.start(copied_python, target, profile, False)
        self.begin(parent, run)
        self.check(parent, run)
        assert not run.count_name("in_child")

    def test_one_descriptor_left(self, copied_python, target, profile):
        """One descriptor is enough to find a process, but not to read its files."""
        parent, run = self.start(copied_python, target, profile, False)
        self.found = resource.prlimit(run.pid, resource.RLIMIT_NOFILE)
        files = set(map(int, os.listdir("/proc/%d/fd" % run.pid)))
        self.allow(run, next(number for number in itertools.count() if number not in files) + 1)
        self.begin_child(parent)
        self.allow(run, self.found[0])
        assert run.load().count_name("in_child") > 0


class TestEachAllocation:
    """Each allocation of a short run fails once.  Either the run reports it in one line and exits with 1, or
    it succeeds."""

    OUT_OF_MEMORY = re.compile("pybpfprof: .*(out of memory|Cannot allocate memory)")
    # The error while the store is read.  Reading is the same for each format, so one of them tests it.
    OF_THE_STORE = "profiles.db: out of memory"

    @pytest.fixture
    def fail_each(self, binary, tmp_path):
        """fail_each(WORD...): {number: error message} of the allocations whose failure ended the run."""
        preloaded = os.path.join(os.path.dirname(binary), "fail_each_allocation.so")
        assert os.path.exists(preloaded), "make unit-tests builds it"

        def fail(*words, first=1):
            path = tmp_path / "report"
            run = subprocess.run([binary, *map(str, words)], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=4 * PATIENCE, check=False,
                                 env=dict(os.environ, LD_PRELOAD=preloaded, FAIL_REPORT=str(path),
                                          FAIL_FIRST=str(first)))
            assert run.returncode == 0 and run.stdout, run.stderr
            told = list(self.read(path.read_bytes()))
            path.unlink()
            assert [number for number, _, _ in told] == list(range(first, first + len(told)))
            return {number: self.judge(number, status, said) for number, status, said in told
                    if status}
        return fail

    @staticmethod
    def read(told):
        while told:
            head, _, told = told.partition(b"\n")
            number, status, length = map(int, head.split())
            yield number, status, told[:length].decode("utf-8")
            told = told[length:]

    def judge(self, number, status, said):
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1, (number, status, said)
        wrong = [line for line in said.splitlines() if self.OUT_OF_MEMORY.match(line)]
        assert len(wrong) == 1, (number, said)
        return wrong[0]

    def test_configuration(self, fail_each, tmp_path):
        config = tmp_path / "agent.yaml"
        config.write_text("store: /s\nrate: 49\nexclude: [comm=make, uid=1000]\n"
                          "push: ['pyroscope+http://localhost:4040 tenant=web queue=4M']\n")
        assert len(fail_each("agent", "--print-config", "--config", config)) > 100

    def test_report(self, fail_each, any_python, target, agent, store):
        target(any_python, "busy.py")
        run = agent("--comm", "busy.py", "--window", "1s", "-r", 99)
        wait_for(lambda: any(row[1] for row in store.windows().values()))
        end(run)
        words = ("report", "--store", store.folder, "-o", "-", "-q")
        failed = fail_each(*words, "-f", "text")
        assert len(failed) > 500
        read = max(number for number, said in failed.items() if self.OF_THE_STORE in said)
        for name in "html", "folded", "pprof", "speedscope":
            assert len(fail_each(*words, "-f", name, first=read)) > 10, name


class TestMemory:
    @pytest.fixture(scope="class")
    def preloaded(self, binary):
        return os.path.join(os.path.dirname(binary), "fail_allocation.so")

    @pytest.fixture
    def attempt(self, any_python, target, profile, preloaded, tmp_path):
        """attempt(WHAT, NUMBER): a checked run in which that allocation, or that caller's first one, fails."""
        pid = target(any_python, "deep.py").pid

        def run(what, number):
            folder = tmp_path / ("%s-%d" % (what, number))
            folder.mkdir()
            environment = dict(os.environ, LD_PRELOAD=preloaded, TMPDIR=str(folder), **{what: str(number)})
            run = profile.attempt("-p", pid, "-d", 0.1, "-r", 999, "-o", folder / "out.html",
                                  "--stats", folder / "out.json", env=environment)
            self.check(run, number, folder)
            return run
        return run

    @staticmethod
    def check(run, number, folder):
        """The run ends with an error message or a whole profile: no crash, and no half-written file."""
        assert run.status in (0, 1, 3, 4, 5), (number, run.status, run.stderr)
        left = {path.name for path in folder.iterdir()}
        assert not [name for name in left if name.startswith(".pybpfprof-")], (number, left)
        page = folder / "out.html"
        assert not page.exists() or page.read_text().rstrip().endswith("</html>"), number
        assert run.status == 0 or "pybpfprof: " in run.stderr, number
        assert "Unknown error" not in run.stderr, number
        # A run that lacks memory says so.  5: other work kept this machine busy, and there was no sample.
        assert run.status in (0, 5) or "memory" in run.stderr, (number, run.status, run.stderr)

    @staticmethod
    def count(attempt):
        """The number of allocations, and the number of callers."""
        said = attempt("FAIL_ALLOCATION", 0).stderr
        return map(int, re.search(r"allocations: (\d+), callers: (\d+)", said).groups())

    def test_each_allocation_fails_in_turn(self, attempt):
        total, _ = self.count(attempt)
        numbers = [1]
        while numbers[-1] < total:
            number = numbers[-1]
            numbers.append(number + 1 if number < FAILING_FIRST else int(number * FAILING_FACTOR))
        assert sum(attempt("FAIL_ALLOCATION", number).status != 0 for number in numbers[:-1]) > 3

    @pytest.mark.prove("fuzz")
    def test_each_caller_fails_in_turn(self, attempt):
        """The callers include libraries."""
        _, callers = self.count(attempt)
        assert callers > 30
        assert sum(attempt("FAIL_CALLER", number).status != 0 for number in range(1, callers + 1)) > 10
