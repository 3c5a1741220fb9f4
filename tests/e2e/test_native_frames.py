# SPDX-License-Identifier: BSD-2-Clause
"""Native frames: each at its place between the Python frames, which stay the same."""

import gzip
import json
import os
import platform
import re
import shutil
import subprocess

import pytest

from conftest import PROGRAMS, wait_used
from legal import BRIEF, runs_until
from native_chains import (BUILD_ID, CHAIN, CHAINS, OTHER, belongs_to, chain_command, chain_library,  # noqa: F401
                           chains, chains_of, check_native_ledger, check_stacks, have, is_python, is_reason,
                           python_of, seen, spell)
from push_servers import fields, number, packed

# From this version on, each activation of the eval loop can be located on the C stack.
RESUMES_SINCE = (3, 10)
# The time until the frames of a new library are known: mappings are read at most once per second.
LATE_S = 3
NO_PYTHON = "[no Python on this thread]"
PLUMBING = re.compile(r"\w*EvalFrame\w*|\w*[vV]ectorcall\w*|_?PyObject_Call(?!oc)\w*|PyEval_\w+|Py_RunMain|"
                      "start_thread")
PYTHON, NATIVE, INTERPRETER = 1, 2, 6  # the page's kinds of functions


def is_of_interpreter(frame):
    return (frame.file or frame.label).startswith(("python", "libpython"))


def between(frames, one, other):
    """The frames between ONE and OTHER, which occur once in the stack."""
    names = [frame.short for frame in frames]
    return frames[names.index(one) + 1:names.index(other)]


def check_no_plumbing(run):
    for frames, _ in run.stacks:
        assert not any(PLUMBING.fullmatch(frame.name) for frame in frames if not is_python(frame)), frames


def test_each_chain(python, chains, profile):
    names = chains_of(python)
    runs = runs_until(profile, lambda runs: have(runs, *names), "-p", chains(python, *names).pid, "-n",
                      "-r", 999, cpu=BRIEF)
    for run in runs:
        check_stacks(run)
        check_native_ledger(run.ledger)
        check_no_plumbing(run)


def test_python_frames_are_the_same_without_native_frames(python, chains, profile):
    names = chains_of(python)
    wanted = {tuple(python_of(CHAINS[name])) for name in names}
    runs = runs_until(profile, lambda runs: wanted <= seen(runs), "-p", chains(python, *names).pid, "-r", 999,
                      cpu=BRIEF)
    beginnings = {stack[:depth] for stack in wanted for depth in range(len(stack) + 1)}
    for run in runs:
        assert all(is_python(frame) or is_reason(frame) for frames, _ in run.stacks for frame in frames)
        assert {tuple(spell(frames)) for frames, _ in run.stacks if not is_reason(frames[0])} <= beginnings
        assert not any(run.ledger["native"].values()) and run.ledger["resumptions"] == 0


def test_all_native_frames(python, chains, profile):
    """Frames of the eval loop are included.  They have no name if the interpreter's file has no symbols."""
    runs = runs_until(profile, lambda runs: have(runs, "mixed"), "-p", chains(python, "mixed").pid, "-n",
                      "--native-all", "-r", 999, cpu=BRIEF)
    for run in runs:
        check_stacks(run)
        check_native_ledger(run.ledger)
        for frames, _ in run.stacks:
            if spell(frames) == CHAINS["mixed"]:
                for one, other in ("chain_enter", "mixed_middle"), ("chain_pass", "mixed_inner"):
                    called = between(frames, one, other)
                    assert called and all(map(is_of_interpreter, called)), frames
                    assert "EvalFrame" in called[-1].label or "+0x" in called[-1].label, frames


def test_code_without_unwind_data(python, chains, profile):
    """Python's stack is whole.  Native frames are lost up to the next Python function.  If that cannot be
    located on the C stack, they are lost up to the root."""
    if python.version >= RESUMES_SINCE:
        wanted = [CHAINS["broken"], CHAINS["broken_leaf"]]
    else:
        wanted = [python_of(CHAINS[name]) + CHAINS[name][-1:] for name in ("broken", "broken_leaf")]
    runs = runs_until(profile, lambda runs: set(map(tuple, wanted)) <= seen(runs),
                      "-p", chains(python, "mixed", "broken", "broken_leaf").pid, "-n", "-r", 999, cpu=BRIEF)
    for run in runs:
        check_stacks(run)
        check_native_ledger(run.ledger)
    resumed, broken = (sum(run.ledger["native"][outcome] for run in runs)
                       for outcome in ("resumed", "no_rows"))
    if python.version >= RESUMES_SINCE:
        assert resumed > 0
    else:
        assert broken > 0 and resumed == 0


def test_hostile_stacks(python, chains, profile):
    """Corrupt return addresses and stack pointers do not change Python's stacks."""
    wanted = {tuple(python_of(CHAINS[name])) for name in ("mixed", "scribbling", "straying")}
    lost = ("fault", "no_rows_yet", "no_rows", "convicted", "resumed")
    runs = runs_until(profile, lambda runs: wanted <= {tuple(python_of(words)) for words in seen(runs)} and
                      any(run.ledger["native"][outcome] for run in runs for outcome in lost),
                      "-p", chains(python, "mixed", "scribbling", "straying").pid, "-n", "-r", 999, cpu=BRIEF)
    for run in runs:
        check_stacks(run)
        check_native_ledger(run.ledger)
        for frames, _ in run.stacks:
            assert is_reason(frames[0]) or python_of(spell(frames))[:2] == ["<module>", "main"], frames


@pytest.mark.skipif(platform.machine() != "x86_64", reason="trampolines are known on x86-64 only")
@pytest.mark.pythons(since=(3, 12))
def test_perf_trampolines(python, target, chain_command, profile):
    """The trampolines that -X perf makes for Python functions do not break the chain, and are not shown."""
    # 3.13's JIT leaves no chain whole.
    program = target(python, *chain_command("mixed", "deep"), environment={"PYTHONPERFSUPPORT": "1", "PYTHON_JIT": "0"})
    runs = runs_until(profile, lambda runs: have(runs, "mixed", "deep") and
                      any(run.ledger["native"]["whole"] for run in runs), "-p", program.pid, "-n", "-r", 999,
                      cpu=BRIEF)
    for run in runs:
        check_stacks(run)
        check_native_ledger(run.ledger)
        for frames, _ in run.stacks:
            # Any other stack: the mapping was not yet known, or a trampoline was being written.
            if tuple(spell(frames)) in {tuple(CHAINS["mixed"]), tuple(CHAINS["deep"])}:
                assert "[anonymous]" not in [frame.label for frame in frames], frames


def test_a_thread_without_python(python, chains, profile):
    stack = ("c:chain_run", "c:chain_forever", "c:chain_spin")
    runs = runs_until(profile, lambda runs: stack in seen(runs) and have(runs, "threaded"),
                      "-p", chains(python, "threaded").pid, "-n", "-r", 999, cpu=BRIEF)
    for run in runs:
        check_native_ledger(run.ledger)
        for frames, _ in run.stacks:
            words = spell(frames)
            if frames[0].label == NO_PYTHON:
                assert tuple(words) == stack[:len(words)] and not any(map(is_python, frames)), frames
            elif not is_reason(frames[0]):
                assert words == CHAINS["threaded"][:len(words)], frames


def test_a_library_that_is_loaded_later(python, chains, profile):
    program = chains(python, "late")
    run = profile.start("-p", program.pid, "-n", "-r", 999)
    run.wait_sampling()
    wait_used(BRIEF, program.pid)
    program.go()
    wait_used(LATE_S, program.pid)
    run.interrupt().load()
    check_native_ledger(run.ledger)
    assert tuple(CHAINS["late"]) in seen([run])


def test_a_library_that_is_deleted(any_python, target, profile, chain_library, tmp_path):
    library = str(tmp_path / CHAIN)
    shutil.copy(chain_library(CHAIN), library)
    program = target(any_python, "native_chain.py", library, chain_library(OTHER), "mixed")
    os.unlink(library)
    for run in runs_until(profile, lambda runs: have(runs, "mixed"), "-p", program.pid, "-n", "-r", 999,
                          cpu=BRIEF):
        check_stacks(run)


def test_beside_kernel_frames(python, chains, profile):
    def is_kernel(frame):
        return frame.label.endswith("_[k]")

    def has_all(runs):
        return any(spell(frames) == CHAINS["reading"] and "vfs_read_[k]" in [frame.label for frame in frames]
                   for run in runs for frames, _ in run.stacks)

    runs = runs_until(profile, has_all, "-p", chains(python, "reading").pid, "-n", "-k", "-r", 999, cpu=BRIEF)
    for run in runs:
        check_stacks(run)
        check_native_ledger(run.ledger)
        for frames, _ in run.stacks:
            kinds = [is_kernel(frame) for frame in frames]
            assert kinds == sorted(kinds), frames


def test_little_memory_for_tables(python, chains, profile):
    """Native frames may be missing, but nothing else."""
    names = chains_of(python)
    wanted = {tuple(python_of(CHAINS[name])) for name in names}
    runs = runs_until(profile, lambda runs: wanted <= {tuple(python_of(words)) for words in seen(runs)},
                      "-p", chains(python, *names).pid, "-n", "--unwind-memory", "1M", "-r", 999, cpu=BRIEF)
    for run in runs:
        check_stacks(run)
        check_native_ledger(run.ledger)


def test_all_processes(any_python, chains, profile):
    pids = [chains(any_python, *names).pid for names in (["mixed"], ["deep"])]
    runs = runs_until(profile, lambda runs: have(runs, "mixed", "deep"), "-a", "-n", "-r", 999, cpu=BRIEF,
                      of=pids)
    for run in runs:
        for pid, name in zip(pids, ("mixed", "deep")):
            for frames, _ in run.stacks:
                words = spell(frames)
                if frames[0].label.startswith("process %d:" % pid) and not is_reason(frames[1]):
                    assert belongs_to(words, CHAINS[name]), frames


def test_a_started_program(any_python, chain_command, profile):
    run = profile("-n", "-r", 999, command=[any_python.path, *chain_command("mixed", "tasks", "end")])
    assert have([run], "mixed", "tasks")


@pytest.fixture
def write(any_python, chains, profile, tmp_path):
    """write(NAME): the bytes of a profile of two chains, in the format of that file name."""
    pid = chains(any_python, "mixed", "key").pid

    def run(name):
        path = tmp_path / name
        finished = profile.start("-p", pid, "-n", "-r", 999, "-o", path, cpu=BRIEF, files=False).finish()
        assert finished.status == 0, finished.stderr
        return path.read_bytes()
    return run


def label(word):
    """The label of a chain's C frame."""
    return "%s (%s)" % (word[2:], CHAIN)


MIXED = [label(word) if ":" in word else word for word in CHAINS["mixed"]]
IN_C = {name for name in MIXED if CHAIN in name}


def test_text(any_python, chains, profile):
    run = profile.start("-p", chains(any_python, "mixed").pid, "-n", "-f", "text", "-o", "-", cpu=BRIEF,
                        files=False).finish()
    assert run.status == 0, run.stderr
    assert IN_C <= set(re.findall(r" (chain\w+ \(\S+\))$", run.stdout.decode(), re.MULTILINE))


def ranges(path):
    """{function: (start address, end address)} of a file."""
    listed = subprocess.check_output(["nm", "-S", path], universal_newlines=True)
    found = re.findall(r"^(\w+) (\w+) \w ([\w.]+)$", listed, re.MULTILINE)
    return {name: (int(start, 16), int(start, 16) + int(size, 16)) for start, size, name in found}


def test_pprof(write, chain_library):
    profile = fields(gzip.decompress(write("profile.pb.gz")))
    strings = [text.decode() for text in profile[6]]
    functions = {number(one, 1): strings[number(one, 2)] for one in map(fields, profile[5])}
    mappings = {number(one, 1): one for one in map(fields, profile[3])}
    library, = (one for one in mappings.values() if strings[number(one, 5)] == chain_library(CHAIN))
    assert strings[number(library, 6)] == BUILD_ID and number(library, 7)
    names, parts = {}, ranges(chain_library(CHAIN))
    for location in map(fields, profile[4]):
        name = names[number(location, 1)] = functions[number(fields(location[4][0]), 1)]
        mapping, address = mappings.get(number(location, 2)), number(location, 3)
        if name in IN_C:
            start, end = parts[name.partition(" ")[0]]
            # A caller's address is the one after its call, which may be the end of the function.
            assert mapping is library and start <= address <= end, name
        if mapping:
            assert number(mapping, 2) <= address <= number(mapping, 3), name
        else:
            assert not address, name
    stacks = [[names[one] for one in packed(fields(sample)[1])] for sample in profile[2]]
    assert any([name for name in stack if name in MIXED] == MIXED[::-1] for stack in stacks), stacks


def test_go_tool_pprof(write, require, tmp_path):
    write("profile.pb.gz")
    text = subprocess.check_output([require("go"), "tool", "pprof", "-top", "-nodefraction=0",
                                    str(tmp_path / "profile.pb.gz")], universal_newlines=True,
                                   env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)))
    assert IN_C <= set(re.findall(r"%  (chain\w+ \(.*\))$", text, re.MULTILINE))


def test_speedscope(write):
    saved = json.loads(write("profile.speedscope.json"))
    frames = [frame["name"] for frame in saved["shared"]["frames"]]
    stacks = [[frames[one] for one in stack] for thread in saved["profiles"] for stack in thread["samples"]]
    assert any([name for name in stack if name in MIXED] == MIXED for stack in stacks)
    assert all("file" not in frame for frame in saved["shared"]["frames"] if frame["name"] in IN_C)


def test_page(write):
    text = write("profile.html").decode()
    saved = json.loads(re.search(r'id="profile">(.*?)</script>', text, re.DOTALL)[1])
    rows = [saved["functions"][at:at + 5] for at in range(0, len(saved["functions"]), 5)]
    kinds = {saved["strings"][row[0]]: row[4] for row in rows}
    assert {name: kinds[name] for name in IN_C} == dict.fromkeys(IN_C, NATIVE)
    assert kinds["mixed_middle"] == PYTHON
    assert {kind for name, kind in kinds.items() if re.search(r"\((lib)?python", name)} <= {INTERPRETER}


@pytest.fixture
def names_library(require, tmp_path):
    path = str(tmp_path / "native_names.so")
    subprocess.run([require("g++"), "-O2", "-fno-optimize-sibling-calls", "-fPIC", "-shared", "-o", path,
                    os.path.join(PROGRAMS, "native_names.cc")], check=True)
    return path


def names_in(run, library):
    return {frame.label for frames, _ in run.stacks for frame in frames
            if os.path.basename(library) in frame.label}


def profile_names(profile, program, library, wanted):
    """All names of the library's functions, once WANTED have been seen."""
    runs = runs_until(profile, lambda runs: any(wanted <= names_in(run, library) for run in runs),
                      "-p", program.pid, "-n", "-r", 999, cpu=BRIEF)
    return set.union(*(names_in(run, library) for run in runs))


def test_names_are_readable(any_python, target, profile, names_library):
    assert "_Z11spin_seldomm.cold" in ranges(names_library)
    names = {"names::inner::spin", "spin_seldom", "spin_copied", "names_spin", "names::Spinner::spin_twice",
             "spin_here", "spin_beside"}
    wanted = {"%s (native_names.so)" % name for name in names}
    program = target(any_python, "native_names.py", names_library)
    found = profile_names(profile, program, names_library, wanted)
    assert found - wanted <= {"note_seldom (native_names.so)"}


def test_functions_without_names(any_python, target, profile, names_library, require, tmp_path):
    """A function is identified by its start address."""
    stripped = str(tmp_path / "native_stripped.so")
    subprocess.run([require("strip"), "-o", stripped, names_library], check=True)
    parts = {start for start, _ in ranges(names_library).values()}
    starts = {name: "native_stripped.so+0x%x" % start for name, (start, _) in ranges(names_library).items()}
    wanted = {starts["_ZN5names5inner4spinEm"], starts["_ZN5names7Spinner10spin_twiceImEEvT_"],
              "names_spin (native_stripped.so)"}
    found = profile_names(profile, target(any_python, "native_names.py", stripped), stripped, wanted)
    for name in found - wanted:
        assert int(name.partition("+0x")[2], 16) in parts, found
