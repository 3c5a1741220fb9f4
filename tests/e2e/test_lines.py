# SPDX-License-Identifier: BSD-2-Clause
"""The readers of line tables and code objects, compared with what each interpreter itself reports."""

import os
import subprocess

import pytest

from conftest import PROGRAMS, missing
from folded import Frame
from legal import BRIEF, KnownLines
from pythons import DEBUG, JIT, find_pythons, one_of_each_minor, own_fetched_and_debug_pythons

# The kinds of line table entries in each version's library, as bits of line_check.  Later ones have all.
KINDS = {(2, 7): 0x76, (3, 6): 0x33, (3, 7): 0x33, (3, 8): 0x77, (3, 9): 0x67, (3, 10): 0xf6}
ALL_KINDS = 0xffff


@pytest.mark.prove("interpreters")
@pytest.mark.proves("lines")
@pytest.mark.pythons(which=one_of_each_minor)
def test_standard_library(python, tool):
    dump = subprocess.Popen([*python.command, os.path.join(PROGRAMS, "dump_lines.py")],
                            stdout=subprocess.PIPE)
    check = subprocess.run([tool("line_check")], stdin=dump.stdout, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, universal_newlines=True)
    dump.stdout.close()
    assert dump.wait() == 0
    assert check.returncode == 0, check.stderr
    code_objects, units, mismatches, kinds = (int(word, 0) for word in check.stdout.split())
    assert mismatches == 0
    assert code_objects > 5000 and units > 200000
    wanted = KINDS.get(python.version[:2], ALL_KINDS)
    assert kinds & wanted == wanted


def dump(tool, target, what, addresses, code_type):
    """The output of code_dump: a list of texts for each address."""
    words = ["%s:%d" % (what, address) for address in addresses]
    said = target.said
    output = subprocess.check_output([tool("code_dump"), str(target.pid), str(said["version"]),
                                      str(code_type), *words])
    texts = output.decode("utf-8").split("\0")
    assert texts.pop() == ""
    per_address = 5 if what == "code" else 2
    answers = []
    while texts:
        count = per_address if texts[0] == "0" else 1
        answers.append(texts[:count])
        del texts[:count]
    return answers


def hold_objects(python, target):
    return target(python, "code_objects.py" if python.version >= (3,) else "code_objects_2_7.py")


@pytest.mark.pythons(which=own_fetched_and_debug_pythons)
def test_code_objects(python, tool, target):
    program = hold_objects(python, target)
    said = program.said
    addresses = [code["address"] for code in said["codes"]]
    expected = [["0", code["name"], code["filename"], str(code["first_line"]),
                 code["table"]] for code in said["codes"]]
    assert dump(tool, program, "code", addresses, said["type"]) == expected
    assert dump(tool, program, "code", addresses, 0) == expected


def test_strings(python, tool, target):
    program = hold_objects(python, target)
    said = program.said
    addresses = [string["address"] for string in said["strings"]]
    expected = [["0", string["text"]] for string in said["strings"]]
    assert dump(tool, program, "str", addresses, 0) == expected


def test_other_objects_are_no_strings(tool, target):
    pythons = [python for python in find_pythons() if python.version < (3,)]
    if not pythons:
        missing("Python 2.7, which alone tells by an object's type")
    program = hold_objects(pythons[0], target)
    addresses = program.said["no_strings"]
    assert dump(tool, program, "str", addresses, 0) == [["-22"]] * len(addresses)


def test_other_objects_are_no_code(python, tool, target):
    program = hold_objects(python, target)
    said = program.said
    answers = dump(tool, program, "code", said["no_code"], said["type"])
    assert answers == [["-22"]] * len(said["no_code"])
    assert dump(tool, program, "code", [0, 8, 2**47, 2**64 - 8], 0) == [["-14"]] * 4


def numbering_pythons():
    """Pythons that compile lines below 1.  Debug builds abort."""
    return [python for python in one_of_each_minor() if python.kind != DEBUG]


@pytest.mark.proves("lines")
@pytest.mark.pythons(which=numbering_pythons)
def test_lines_below_1(python, target, profile):
    """A program may number its lines itself.  Frames with such a line have a name, but no line."""
    check_numbered(profile("-p", target(python, "numbered.py").pid, "-r", 499, cpu=BRIEF),
                   jit=python.kind == JIT)


def test_first_lines_below_1(any_python, target, profile):
    check_numbered(profile("-p", target(any_python, "numbered.py").pid, "-r", 499, "-F", cpu=BRIEF))


def check_numbered(run, jit=False):
    leaves = {(frames[-1].name, frames[-1].file, frames[-1].line) for frames, _ in run.stacks
              if frames[-1].file in ("below.py", "above.py")}
    # While the JIT's code runs, no innermost frame has a line.
    if jit and ("<lambda>", "above.py", None) in leaves:
        leaves = leaves - {("<lambda>", "above.py", None)} | {("<lambda>", "above.py", 92)}
    assert leaves == {("<lambda>", "below.py", None), ("<lambda>", "above.py", 92)}
    assert run.ledger["name_unknown"] == 0


@pytest.mark.proves("lines")
@pytest.mark.pythons(which=one_of_each_minor, since=(3, 10))
def test_instructions_without_a_line(python, target, profile):
    """They have the first line of their function."""
    program = target(python, "unlined.py")
    run = profile("-p", program.pid, "-r", 499, cpu=BRIEF)
    lines = {frames[-1].line for frames, _ in run.stacks if frames[-1].name == "spin"}
    # While the JIT's code runs, perhaps all the time, no innermost frame has a line.
    unlined = {None} if python.kind == JIT else set()
    assert lines and lines - unlined <= {program.said}


# Code that is made at run time, and code that runs before Python can be asked about it.
NO_SOURCE = {"<string>", "<frozen getpath>"}


def judge_lines(python, run):
    """The frames with a line that their function does not have, and all frames that could be judged."""
    known = KnownLines(python)
    judged, wrong = set(), set()
    stacks = [frames for frames, _ in run.stacks if frames[-1].file]
    known.learn({frame.file for frames in stacks for frame in frames} - NO_SOURCE)
    for frames in stacks:
        for frame in frames:
            # Frames without names are counted separately, and the JIT's code has no lines.
            if frame.file in NO_SOURCE or frame.name.startswith("[") or \
                    (python.kind == JIT and frame is frames[-1] and frame.line is None):
                continue
            judged.add(frame)
            if not known.has(frame):
                wrong.add(frame)
    return wrong, judged


@pytest.mark.proves("lines")
@pytest.mark.pythons(which=one_of_each_minor)
@pytest.mark.parametrize("seconds", [1, pytest.param(3, marks=pytest.mark.prove("lines"))])
def test_every_line_seen_is_one_of_its_function(python, profile, figure, seconds):
    """In the program, the standard library and the import system, from the start on."""
    program = os.path.join(PROGRAMS, "libraries.py")
    run = profile("-r", 9999, "--full-filenames", command=[*python.command, program, str(seconds)])
    wrong, judged = judge_lines(python, run)
    figure("{:,} of {:,}".format(len(wrong), len(judged)))
    assert wrong == set() and judged
    if seconds > 1:
        assert len(judged) > 500 and len({frame.file for frame in judged}) > 20
        others = run.count(lambda frame: frame.file in NO_SOURCE or frame.name.startswith("["))
        assert others < 0.1 * run.samples


@pytest.mark.parametrize("module, function", [
    ("string", "capwords"), ("importlib._bootstrap", "_find_and_load")])
def test_judge_of_lines(any_python, module, function):
    """KnownLines refuses the lines just outside of a function, and unknown functions."""
    say_file = "import %s as module; print(module.%s.__code__.co_filename)" % (module, function)
    file = subprocess.check_output([*any_python.command, "-c", say_file],
                                   universal_newlines=True).strip()
    known = KnownLines(any_python)
    known.learn([file])
    lines = known.files[file][function]
    for line, legal in ((min(lines) - 1, False), (min(lines), True), (max(lines), True),
                        (max(lines) + 1, False)):
        assert known.has(Frame("%s (%s:%d)" % (function, file, line))) == legal
    assert not known.has(Frame("no_such (%s:%d)" % (file, min(lines))))
