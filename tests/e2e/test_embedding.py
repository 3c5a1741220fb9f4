# SPDX-License-Identifier: BSD-2-Clause
"""Programs that embed or load Python.  The profiler must find the running interpreter, not just a file."""

import collections
import os
import re
import subprocess

import pytest

from conftest import PATIENCE, PROGRAMS, missing, wait_used
from embedding import (BUSY, SPIN, expect_refusal, fetched_pythons, find_fetched_parts, link_shared,
                       link_static, load, pythons_with_libraries)
from legal import BRIEF, DeepLegal, briefly_and_long, check_whole
from pythons import debian

pytest_plugins = ["embedding"]


UNCLEAR, NO_PYTHON = "[thread is in one of several interpreters]", "[no Python on this thread]"


def that_tell_by_the_c_stack():
    """Versions for which the address of the running frame shows the thread of a thread state."""
    return [python for python in pythons_with_libraries() if python.version >= (3, 10)]


class TestEmbedding:
    @pytest.mark.proves("embedding")
    @pytest.mark.pythons(which=pythons_with_libraries)
    @briefly_and_long(1)
    def test_each_version(self, python, embed, profile, figure, measured, cpu):
        """A program that embeds this Python has whole stacks with the right names and lines."""
        legal = DeepLegal(python, roots=("<module>", "work"))
        wrong, ways = {}, []
        for how in "shared", "static":
            program = embed(python, how, os.path.join(PROGRAMS, "deep.py"))
            if program:
                run = profile("-p", program.pid, "-r", 4999, cpu=cpu)
                program.end()
                legal.judge(run, wrong)
                assert wrong == {} and run.ledger["python"] > run.ledger["truncated"] == 0
                if cpu > BRIEF:
                    check_whole(measured, "%s embedded, %s" % (how, python.name), run.ledger["python"],
                                run.samples)
                ways.append(how)
        figure(", ".join(ways) or missing("libpython of " + python.name))

    @pytest.mark.pythons(which=that_tell_by_the_c_stack)
    @briefly_and_long()
    def test_a_thread_state_that_moves_to_another_thread(self, python, embed, profile, cpu):
        """The thread state keeps naming its first thread, which no longer runs Python.  The profiler learns
        this only when it sees the other thread use the state."""
        program = embed(python, "shared", BUSY, "handed_on.c") or embed(python, "static", BUSY, "handed_on.c")
        run = profile("-p", program.pid, "-r", 1999, "-t", cpu=cpu)
        first, other = collections.Counter(), collections.Counter()
        for frames, count in run.stacks:
            of_first = "thread (%d)" % program.pid in frames[0].label
            (first if of_first else other)[frames[-1].name] += count
        assert first[UNCLEAR] > 0 and other.keys() - {UNCLEAR, NO_PYTHON}
        if cpu > BRIEF:
            assert sum(first.values()) - first[UNCLEAR] <= 20, first
            assert other[UNCLEAR] + other[NO_PYTHON] <= 0.02 * sum(other.values()), other

    def test_copied_data(self, embeddable, build, target, expect_whole, require):
        """The linker gives the program a copy of PyCode_Type, and libpython uses that."""
        python, parts = next((pair for pair in embeddable if pair[0].version[:2] == (3, 11)),
                             embeddable[-1])
        path = build("embed.c", "-no-pie", "-fno-pie", *link_shared(parts))
        symbols = subprocess.run([require("nm"), "-D", "--defined-only", path],
                                 stdout=subprocess.PIPE, universal_newlines=True).stdout
        assert "PyCode_Type" in symbols
        expect_whole(target.start([path, BUSY], environment={"PYTHONHOME": parts.home}))

    @pytest.mark.parametrize("options", [
        ["-pie"], ["-no-pie", "-s"], ["-pie", "-s", "-rdynamic"]
    ], ids=["symbols", "stripped", "exported"])
    def test_static(self, embeddable, build, target, expect_whole, options):
        # At its start 2.7 imports modules that need the shared library.
        linkable = [(python, parts, parts.pic if "-pie" in options else parts.static)
                    for python, parts in embeddable if python.version >= (3,)]
        linkable = [found for found in linkable if found[2]]
        if not linkable:
            missing("libpython.a that can be linked so")
        for python, parts, library in linkable[:1] + linkable[1:][-1:]:
            path = build("embed.c", *options, *link_static(parts, library))
            expect_whole(target.start([path, BUSY], environment={"PYTHONHOME": parts.home}))
            target.end()

    @pytest.mark.parametrize("pie", ["-no-pie", "-pie"])
    @pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.prove("interpreters"))])
    def test_stripped_without_exported_symbols(self, embeddable, build, target, expect_whole, home, pie, every):
        """No symbol identifies CPython; before 3.10 there is no section .PyRuntime, either."""
        found = [(python, parts, parts.pic if pie == "-pie" else parts.static)
                 for python, parts in embeddable if python.version < (3, 10)]
        found = [(python, parts, library) for python, parts, library in found if library]
        if not found:
            missing("libpython.a before 3.10 that can be linked so")
        for python, parts, library in found if every else found[-1:]:
            path = build("embed.c", pie, "-s", *link_static(parts, library))
            expect_whole(target.start([path, BUSY],
                                      environment={"PYTHONHOME": home(python, parts)}))
            target.end()

    def test_stripped_and_not_started(self, unnamed, build, host, profile):
        python, parts = unnamed
        path = build("host.c", "-DOWN_COPY", "-no-pie", "-s", *link_static(parts, parts.static))
        started = host("ready", "wait", path=path)
        expect_refusal(profile.attempt("-p", started.pid, "-d", 5),
                       "Python %d.%d.%d, stripped: " % python.version, "-rdynamic")

    @pytest.mark.pythons(which=fetched_pythons, since=(3, 13))
    @pytest.mark.parametrize("how", ["linked", "loaded"])
    def test_in_a_root_of_its_own(self, python, build, host, target, expect_whole, how):
        """These are versions for which this machine's libc may be too old."""
        parts = find_fetched_parts(python)
        library = os.path.join("/usr", os.path.relpath(parts.shared, parts.home))
        if how == "linked":
            path = build("embed.c", *link_shared(parts))
            started = target.start([debian.ENTER, python.root, path, BUSY])
        else:
            started = host("load=" + library, "start", "run=" + SPIN, "ready", "wait",
                           prefix=(debian.ENTER, python.root))
        with open("/proc/%d/maps" % started.pid, encoding="ascii") as maps:
            assert library in maps.read()
        expect_whole(started)

    @pytest.mark.prove("interpreters")
    def test_go(self, newest, target, expect_whole, require, tmp_path):
        _, parts = newest
        folder, name = os.path.split(parts.shared)
        path = str(tmp_path / "embed")
        subprocess.run([require("go"), "build", "-o", path, os.path.join(PROGRAMS, "embed.go")],
                       check=True, env=dict(os.environ, CGO_ENABLED="1", GOFLAGS="",
                                            CC=require("gcc"), CGO_CFLAGS="-I" + parts.include,
                                            CGO_LDFLAGS=" ".join(link_shared(parts)[2:])))
        expect_whole(target.start([path, BUSY], environment={"PYTHONHOME": parts.home}))


class TestLoading:
    def test_loaded_later(self, newest, host, expect_whole):
        _, parts = newest
        expect_whole(host(*load(parts), "start", "run=" + SPIN, "ready", "wait"))

    def test_native_threads_that_call_python(self, newest, host, profile_some):
        _, parts = newest
        started = host(*load(parts), "start", "run=" + SPIN, "run=" + SPIN, "ready", "wait")
        run = profile_some(started, "-t")
        assert run.count_name("spin") == run.ledger["python"] == run.samples
        tids = {int(re.match(r".*\((\d+)\)", frames[0].label).group(1)) for frames, _ in run.stacks}
        assert tids and tids <= set(started.said)

    def test_not_yet_loaded(self, host, profile):
        started = host("ready", "wait")
        expect_refusal(profile.attempt("-p", started.pid, "-d", 5), "not a Python", "later")

    def test_loaded_but_not_started(self, newest, host, profile):
        python, parts = newest
        started = host(*load(parts), "ready", "spin")
        run = profile("-p", started.pid, "-r", 199, cpu=0.5)
        assert "has loaded Python %d.%d.%d but not started it" % python.version in run.stderr
        assert run.ledger["python"] == 0

    @pytest.mark.prove("interpreters")
    def test_java(self, newest, build, target, require, profile_some):
        _, parts = newest
        library = build("host.c", "-shared", "-fPIC")
        steps = "\n".join([*load(parts), "start",
                           "run=import runpy; runpy.run_path(%r)" % BUSY, "wait"])
        started = target.start([require("java"), os.path.join(PROGRAMS, "Host.java"), library],
                               environment={"HOST_STEPS": steps})
        run = profile_some(started)
        assert sum(run.ledger["errors"].values()) == 0
        assert run.count_name("spin") == run.ledger["python"]


PROCESS = "process %d:"

# Shorter than the interval after which all processes are examined again.
WORK_S = 1.5
WORK = """
import time
def spin_long_enough():
    end = time.process_time() + %g
    while time.process_time() < end: sum(range(1000))
spin_long_enough()
""" % WORK_S


def samples_of(run, pid, name):
    """The samples of process PID that have a frame NAME, in a profile of several processes."""
    return sum(count for frames, count in run.stacks
               if frames[0].label.startswith(PROCESS % pid)
               and any(frame.name == name for frame in frames))


class TestAmongAll:
    """With -a and -s, a program is recognized by libraries that it loads later."""

    # More than the 10 s after which all are examined if the kernel does not report mappings.
    KNOWN_WITHIN_S = 11

    RATE = 499

    def late(self, newest, host):
        _, parts = newest
        return host("ready", "sleep=1.5", *load(parts), "start", "run=" + SPIN, "wait")

    def test_late(self, newest, host, profile):
        run = profile.start("-a", "-r", 199)
        run.wait_sampling()
        started = self.late(newest, host)
        wait_used(self.KNOWN_WITHIN_S, started.pid)
        run.interrupt().load()
        assert samples_of(run, started.pid, "spin")

    def test_late_child(self, newest, host, profile):
        started = self.late(newest, host)
        run = profile("-p", started.pid, "-s", "-r", 199, cpu=2)
        assert samples_of(run, started.pid, "spin")

    @pytest.fixture
    def twice(self, newest, build, target):
        """A shell that runs a program first without Python, and then with Python from the start."""
        _, parts = newest
        words = 'echo ready; read line; "$0" sleep=0.6; "$0" "$@"; true'
        return target.start(["sh", "-c", words, build("host.c"), *load(parts), "start", "main=" + WORK])

    @pytest.mark.parametrize("everything", [True, False], ids=["all", "children"])
    def test_a_file_that_ran_without_python(self, twice, profile, everything):
        """The result for the first process must not be reused for the second one, which runs the same file."""
        scope = ("-a",) if everything else ("-p", twice.pid, "-s")
        run = profile.start(*scope, "-r", self.RATE)
        run.wait_sampling()
        twice.go()
        twice.process.wait(PATIENCE)
        if everything:
            run.interrupt()
        run.load()
        assert run.count_name("spin_long_enough") > 0, run.stderr

    def test_a_worker_whose_parent_has_no_python(self, newest, host, profile):
        """The worker is forked after the profiler found no Python in its parent."""
        _, parts = newest
        started = host("ready", "line", "sleep=0.5", "fork", "sleep=0.1", *load(parts), "start",
                       "main=" + WORK)
        run = profile.start("-p", started.pid, "-s", "-r", self.RATE)
        run.wait_sampling()
        started.go()
        run.load()
        assert run.count_name("spin_long_enough") > 0, run.stderr

    def test_a_process_that_is_never_identified(self, build, host, profile):
        """A process that might become a Python, but does not during the recording, is still counted."""
        library = build("decoy.c", "-shared", "-fPIC", "-DDECOY=ZERO")
        started = host("ready", "spin", environment={"LD_PRELOAD": library})
        run = profile("-a", "-r", 199, cpu=1, of=[started.pid])
        samples = collections.Counter()
        for frames, count in run.stacks:
            if frames[-1].label == "[process not identified yet]":
                samples[frames[0].label.startswith(PROCESS % started.pid)] += count
        # Other processes may also start.
        assert sum(samples.values()) == run.ledger["errors"]["not_known_yet"]
        assert samples[True] > 0


class TestSeveral:
    @pytest.fixture
    def two(self, embeddable):
        if len({python.version[:2] for python, _ in embeddable}) < 2:
            missing("second libpython")
        return embeddable[0], embeddable[-1]

    @pytest.mark.parametrize("living", [0, 1])
    def test_only_one_runs(self, two, host, expect_whole, living):
        _, lives = two[living]
        _, rests = two[1 - living]
        expect_whole(host("load=" + rests.shared, *load(lives), "start", "run=" + SPIN,
                          "load=" + rests.shared, "ready", "wait"))

    @pytest.mark.parametrize("first", ["lives", "rests"])
    def test_loaded_twice(self, newest, host, expect_whole, first):
        """The same file is loaded a second time, in another linker namespace.  Only one copy runs."""
        _, parts = newest
        load, again = "load=" + parts.shared, "again=" + parts.shared
        if first == "lives":
            started = host(load, "home=" + parts.home, "start", "run=" + SPIN, again, "ready", "wait")
        else:
            started = host(load, again, "start", "main=exec(open(%r).read())" % BUSY,
                           environment={"PYTHONHOME": parts.home})
        expect_whole(started)

    def test_the_linked_copy_does_not_run(self, embeddable, build, host, expect_whole):
        own = next((parts for _, parts in embeddable if parts.pic), None)
        lives = next((parts for _, parts in reversed(embeddable) if parts is not own), None)
        if not own or not lives:
            missing("libpython.a beside another libpython")
        path = build("host.c", "-DOWN_COPY", *link_static(own, own.pic))
        expect_whole(host(*load(lives), "start", "run=" + SPIN, "ready", "wait", path=path))

    def test_both_run(self, two, host, profile_some):
        (older, first), (newer, second) = two
        older_spin, newer_spin = SPIN.replace("spin", "older"), SPIN.replace("spin", "newer")
        started = host(*load(second), "start", "run=" + newer_spin,
                       *load(first), "start", "run=" + older_spin, "ready", "wait")
        run = profile_some(started)
        said = [line for line in run.stderr.splitlines() if "more than one Python" in line]
        assert len(said) == 1
        assert "shows Python %d.%d.%d" % newer.version in said[0]
        assert "but not Python %d.%d.%d" % older.version in said[0]
        assert run.count_name("newer") == run.ledger["python"]
        assert run.count_name("older") == 0

    @pytest.mark.parametrize("kind", ["ZERO", "NOISE", "OFFSETS", "LIVING", "OUTSIDE", "HEAD"])
    def test_decoy(self, static_python, build, host, target, expect_whole, profile, kind):
        """A library that has CPython's symbols but is not CPython, in a Python and in another program."""
        library = build("decoy.c", "-shared", "-fPIC", "-DDECOY=" + kind)
        code = "import ctypes\nctypes.CDLL(%r)\nexec(open(%r).read())" % (library, BUSY)
        expect_whole(target.start([static_python.path, "-c", code]))
        target.end()
        other = host("ready", "wait", environment={"LD_PRELOAD": library})
        run = profile.attempt("-p", other.pid, "-d", 0.1, "-o", os.devnull, "-f", "folded")
        if kind == "LIVING":
            assert "has loaded Python 3.11.7 but not started it" in run.stderr
        else:
            expect_refusal(run, str(other.pid),
                           "invalid or out of range" if kind == "OFFSETS" else "can be recognized")
