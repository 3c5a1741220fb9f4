# SPDX-License-Identifier: BSD-2-Clause
"""Running targets and started commands: names, lines, threads and options, on every Python."""

import os
import re
import shutil
import sys

import pytest

from conftest import PROGRAMS
from legal import BRIEF, briefly_and_long, check_whole, runs_until
from pythons import JIT, one_of_each_minor, own_pythons
from test_thread_names import wait_each_used

sys.path.insert(0, PROGRAMS)
from totals import Totals  # noqa: E402

# co_name and co_qualname of the callers of names.py's spin. All have the same share.
NAMES = [
    ("plain", "plain"),
    ("method", "Outer.method"),
    ("class_method", "Outer.class_method"),
    ("static_method", "Outer.static_method"),
    ("value", "Outer.value"),
    ("__call__", "Outer.Inner.__call__"),
    ("nested", "enclosing.<locals>.nested"),
    ("<lambda>", "<lambda>"),
    ("comprehend", "comprehend"),
    ("set_comprehend", "set_comprehend"),
    ("<genexpr>", "consume.<locals>.<genexpr>"),
    ("produce", "produce"),
    ("x" * 4096, "x" * 4096),
]
# Those of names_3.py, and the names that 2.7 has instead.
NAMES_3 = [
    ("coroutine", "functions.<locals>.coroutine"),
    ("café", "functions.<locals>.café"),
    ("функция", "functions.<locals>.функция"),
    ("関数", "functions.<locals>.関数"),
    ("𐌰𐌱", "functions.<locals>.𐌰𐌱"),
    ("測る", "functions.<locals>.Größe.測る"),
]
NAMES_2_7 = [(name, name) for name in ("café", "caf\\xe9", "nul\\x00byte")]
COMPREHENSIONS = [
    ("<listcomp>", "comprehend.<locals>.<listcomp>"),
    ("<setcomp>", "set_comprehend.<locals>.<setcomp>"),
]


def names_of(python):
    return NAMES + (NAMES_3 if python.version >= (3,) else NAMES_2_7)


def expected_name(python, names):
    """Before 3.11 a function that no module leads to has its bare name."""
    bare, qualified = names
    return qualified if python.version >= (3, 11) or "<locals>" not in qualified else bare


@pytest.mark.proves("names, Unicode")
class TestNames:
    """names.py, profiled once for all tests."""

    @pytest.fixture(scope="session")
    def run(self, python, session_target, session_profile):
        program = session_target(python, "names.py")
        run = session_profile("-p", program.pid, "-r", 999, cpu=1)
        program.end()
        return run

    def test_each_is_seen(self, python, run):
        assert all(run.count_name(expected_name(python, names)) for names in names_of(python))

    @pytest.mark.prove("truth")
    def test_each_has_its_share(self, python, run, sampled_shares):
        counts = [run.count_name(expected_name(python, names)) for names in names_of(python)]
        sampled_shares(counts, [1] * len(counts))

    @pytest.mark.parametrize("names", COMPREHENSIONS, ids=[name[0] for name in COMPREHENSIONS])
    def test_comprehensions_have_a_frame_until_3_11(self, python, run, names):
        found = run.count_name(expected_name(python, names))
        inlined = python.version < (3,) and names[0] == "<listcomp>"
        assert (found > 0) == (python.version < (3, 12) and not inlined)

    def test_no_other_names(self, python, run):
        legal = {expected_name(python, names) for names in names_of(python) + COMPREHENSIONS}
        legal |= {"<module>", "main", "spin", "enclosing", "consume", "measured_thread_time",
                  expected_name(python, ("drive", "functions.<locals>.drive"))}
        named = {frame.name for frames, _ in run.stacks for frame in frames if frame.file}
        assert named <= legal

    @pytest.mark.prove("truth")
    def test_every_sample_is_python(self, python, run, measured):
        check_whole(measured, "functions of every name, " + python.name, run.ledger["python"], run.samples)
        assert run.ledger["lost"] == 0

    def test_root_is_the_module(self, run):
        assert run.ledger["truncated"] == 0
        assert {frames[0].name for frames, _ in run.stacks if frames[0].file} == {"<module>"}

    def test_files(self, run):
        files = {frame.file for frames, _ in run.stacks for frame in frames if frame.file}
        names = {os.path.basename(file) for file in files}
        assert {"names.py", "<string>"} <= names <= {"names.py", "names_3.py", "portable.py",
                                                     "<string>"}


def lines_with(marker):
    """{text after MARKER: the first such line's number} of lines.py."""
    with open(os.path.join(PROGRAMS, "lines.py"), encoding="utf-8") as source:
        lines = list(enumerate(source, 1))
    return {line.partition(marker)[2].strip(): number
            for number, line in reversed(lines) if marker in line}


# The lines of distant_worker's generated source: its first line, the clock, the two sums and the rest.
DISTANT_SUMS = (604, 905)
DISTANT_LINES = {1, 2, 303, 604, 905, 906, 907}


@pytest.mark.proves("lines")
class TestLines:
    """lines.py, which measures the CPU time of its lines."""

    @pytest.fixture(scope="session")
    def run(self, python, session_target, session_profile, tmp_path_factory):
        path = str(tmp_path_factory.mktemp("lines") / "totals")
        program = session_target(python, "lines.py", path)
        run = session_profile("-p", program.pid, "-r", 999, cpu=1)
        run.used = Totals(path, 4).load()
        program.end()
        return run

    def leaves(self, run, name):
        """{line: samples} of the stacks whose leaf is the function NAME."""
        found = {}
        for frames, count in run.stacks:
            if frames[-1].name == name:
                found[frames[-1].line] = found.get(frames[-1].line, 0) + count
        return found

    def test_only_lines_that_the_function_has(self, python, run):
        marked = lines_with("# share: ")
        near = self.leaves(run, "worker")
        start = lines_with("def worker(used)")[":"]
        end = lines_with("    return total")[""]
        unknown = {None} if python.kind == JIT else set()
        assert near and set(near) <= set(range(start, end + 1)) | unknown
        assert set(map(int, marked)) == {0, 1, 2}
        assert set(self.leaves(run, "distant_worker")) <= DISTANT_LINES | unknown

    def test_callers_stand_at_their_calls(self, run):
        calls = {"worker": {lines_with("        worker(used)")[""]},
                 "distant_worker": {lines_with("        distant_worker(used)")[""]}}
        last = lines_with("main()")[""]
        seen = set()
        for frames, _ in run.stacks:
            if len(frames) == 3 and frames[2].name in calls:
                assert frames[0].line == last
                assert frames[1].line in calls[frames[2].name]
                seen.add(frames[2].name)
        assert seen == set(calls)

    def counts(self, run):
        """Samples of each line that works: three of worker, two of distant_worker."""
        marked = {int(number): line for number, line in lines_with("# share: ").items()}
        near = self.leaves(run, "worker")
        distant = self.leaves(run, "distant_worker")
        return [near.get(marked[index], 0) for index in range(3)] + \
            [distant.get(line, 0) for line in DISTANT_SUMS]

    def test_all_working_lines_are_seen(self, python, run):
        # JIT code does not tell its line, see test_jit.py.
        assert python.kind == JIT or all(self.counts(run))

    @pytest.mark.prove("lines")
    def test_each_line_has_its_share(self, run, sampled_shares):
        *near, distant = run.used
        sampled_shares(self.counts(run), [*near, distant / 2, distant / 2])


class TestOptions:
    """Several profilers sample one busy target at once, each with a different option."""

    @pytest.fixture(scope="session")
    def runs(self, python, session_target, session_profile):
        program = session_target(python, "named_threads.py")
        options = {"plain": (), "-t": ("-t",), "-F": ("-F",), "--nolineno": ("--nolineno",),
                   "--full-filenames": ("--full-filenames",)}
        started = {name: session_profile.start("record", "-p", program.pid, "-r", 499, *words)
                   for name, words in options.items()}
        for run in started.values():
            run.wait_sampling()
        wait_each_used(0.2, program.pid, program.said.values())
        runs = {name: run.interrupt().load() for name, run in started.items()}
        runs["target"] = program
        program.end()
        return runs

    def frames(self, run):
        return {frame for frames, _ in run.stacks for frame in frames}

    def test_plain_has_lines_and_short_files(self, python, runs):
        spin = [frame for frame in self.frames(runs["plain"]) if frame.name == "spin"]
        assert spin and (all(frame.line for frame in spin) or python.kind == JIT)
        assert all(not os.path.isabs(frame.file) for frame in spin)
        assert not any(frame.label.startswith("thread") for frame in self.frames(runs["plain"]))

    def test_threads_have_their_ids_and_names(self, runs):
        jobs = {"first worker": "first_job", "zweiter; ü 2": "second_job",
                "the main one": "main_job"}
        labels = {}
        for frames, count in runs["-t"].stacks:
            match = re.fullmatch(r"thread \((\d+)\): (.*)", frames[0].label)
            assert match, frames[0].label
            for job in jobs.values():
                if any(frame.name == job for frame in frames):
                    labels.setdefault((int(match[1]), match[2]), set()).add(job)
        # Characters that would break a folded line, or look like its count, are replaced.
        shown = {name: name.replace(";", ":").replace(" 2", "_2") for name in jobs}
        expected = {(runs["target"].said[name], shown[name]): {job} for name, job in jobs.items()}
        assert labels == expected

    def test_function_mode_has_one_frame_per_function(self, runs):
        spin = [frame for frame in self.frames(runs["-F"]) if frame.name == "spin"]
        source = os.path.join(PROGRAMS, "named_threads.py")
        with open(source, encoding="utf-8") as program:
            first_line = program.read().split("\n").index("def spin(seconds):") + 1
        assert len(spin) == 1
        assert spin[0].line in (None, first_line)

    def test_nolineno_has_no_lines(self, runs):
        frames = self.frames(runs["--nolineno"])
        assert any(frame.name == "spin" for frame in frames)
        assert all(frame.line is None for frame in frames)

    def test_full_filenames(self, runs):
        spin = {frame.file for frame in self.frames(runs["--full-filenames"])
                if frame.name == "spin"}
        assert spin == {os.path.join(PROGRAMS, "named_threads.py")}

    @pytest.mark.prove("truth")
    def test_all_see_the_same(self, runs):
        expected = runs["plain"].count_name("spin") / runs["plain"].samples
        for name in ("-t", "-F", "--nolineno", "--full-filenames"):
            share = runs[name].count_name("spin") / runs[name].samples
            assert abs(share - expected) < 0.15


def test_file_names_of_every_kind(python, target, profile, tmp_path):
    folder = os.fsencode(str(tmp_path)) + b"/a folder; with\n\xff"
    os.mkdir(folder)
    path = folder + b"/it's \"quoted\"; n\xc3\xa9 \xfe.py"
    shutil.copy(os.path.join(PROGRAMS, "busy.py"), path)
    program = target.start([*python.command, path])
    run = profile("-p", program.pid, "-r", 499, "--full-filenames", cpu=BRIEF)
    files = {frame.file for frames, _ in run.stacks for frame in frames if frame.name == "leaf"}
    strange = ("\\xff", "\\xfe") if python.version < (3,) else ("\\udcff", "\\udcfe")
    shown = str(tmp_path) + "/a folder: with\\x0a%s/it's \"quoted\": né %s.py" % strange
    assert files == {shown}


def test_several_processes(python, target, profile):
    programs = [target(python, "busy.py"), target(python, "burn.py", 60, "wait")]
    programs[1].go()
    run = profile("-p", programs[0].pid, "-p", programs[1].pid, "-r", 499, cpu=BRIEF)
    seen = {}
    for frames, count in run.stacks:
        match = re.fullmatch(r'process (\d+):"(.*)"', frames[0].label)
        assert match, frames[0].label
        names = seen.setdefault(int(match[1]), {"command": match[2], "functions": set()})
        names["functions"] |= {frame.name for frame in frames}
    assert set(seen) == {program.pid for program in programs}
    assert "spin" in seen[programs[0].pid]["functions"]
    assert "burn" not in seen[programs[0].pid]["functions"]
    assert "inner_loop" in seen[programs[1].pid]["functions"]
    assert seen[programs[1].pid]["command"].endswith("burn.py 60 wait")


def profile_command(python, profile):
    program = os.path.join(PROGRAMS, "burn.py")
    # On a busy machine the profiler may identify Python late, and miss its start.
    run = profile("-r", 9999, command=["nice", "-n", "15", *python.command, program, "0.3",
                                       "print=hello  there"])
    assert run.stdout == b"hello  there\n"
    assert run.count_name("inner_loop") > 0
    assert run.count(lambda frame: frame.file is None and frame.name.startswith("[")
                     and not frame.name.startswith("[code object ")) \
        == run.ledger["samples"] - run.ledger["python"] + run.ledger["truncated"]
    return run


@pytest.mark.pythons(which=own_pythons)
def test_command_is_profiled(python, profile):
    profile_command(python, profile)


@pytest.mark.prove("truth")
@pytest.mark.pythons(which=own_pythons)
def test_start_of_a_command_is_seen(python, profile, measured):
    """Samples before the program's first line are there. Code objects that start-up frees have names."""
    run = profile_command(python, profile)
    expected = 0.3 * run.ledger["rate_hz"]
    found = run.count_name("inner_loop") / expected
    measured("samples of a command's 0.3 s, of those due, " + python.name, "%.2f" % found, "0.5 to 1.7")
    assert 0.5 < found < 1.7
    assert run.samples > run.count_name("burn")
    assert run.ledger["errors"]["code_replaced"] == 0
    if python.version >= (3,):
        assert run.count(lambda frame: "importlib" in (frame.file or "")) > 0


@pytest.mark.proves("native threads")
def test_native_threads_have_no_python(python, target, profile):
    program = target(python, "native_thread.py")
    run = profile("-p", program.pid, "-r", 499, "-t", cpu=1)
    native = sum(count for frames, count in run.stacks
                 if frames[0].label.endswith(": native spinner"))
    assert run.ledger["no_python"] == native > 0
    assert run.count_name("spin") == run.ledger["python"] > 0


@pytest.mark.proves("native threads")
@pytest.mark.pythons(which=one_of_each_minor)
@briefly_and_long()
def test_native_threads_that_enter_python(python, target, profile, measured, cpu):
    """PyGILState_Ensure gives each call a new thread state, or reuses the thread's."""
    legal = [["entered", "middle", "leaf"],
             ["<module>", "main", "reenter", "compare", "middle", "leaf"]]
    def roots(runs):
        return {frames[0].short for run in runs for frames, _ in run.stacks if frames[0].file}

    runs = runs_until(profile, lambda runs: roots(runs) == {"entered", "<module>"},
                      "-p", target(python, "ensured.py").pid, "-r", 1999, cpu=cpu)
    for frames, _ in (row for run in runs for row in run.stacks):
        names = [frame.short for frame in frames]
        assert frames[0].file is None or any(names == way[:len(names)] for way in legal), names
    if cpu > BRIEF:
        samples = sum(run.samples for run in runs)
        unknown = sum(sum(run.ledger["errors"].values()) for run in runs)
        check_whole(measured, "native threads that enter Python, " + python.name, samples - unknown, samples)


@pytest.mark.proves("GIL released")
@briefly_and_long()
def test_callers_of_code_that_released_the_gil(python, target, profile, measured, cpu):
    program = target(python, "released.py")
    runs = runs_until(profile, lambda runs: all(any(run.count_name(name) for run in runs)
                                                for name in program.said),
                      "-p", program.pid, "-r", 999, cpu=cpu)
    if cpu > BRIEF:
        found = sum(run.count_name(name) for run in runs for name in program.said)
        check_whole(measured, "code that released the GIL, " + python.name, found,
                    sum(run.samples for run in runs))
