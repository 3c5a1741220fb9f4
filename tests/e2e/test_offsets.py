# SPDX-License-Identifier: BSD-2-Clause
"""The table of offsets, compared with the headers of every interpreter here."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, missing, missing_without_pyenv
from pythons import DEBUG, FREE_THREADED, debian, find_pythons, own_and_fetched_pythons, own_pythons

GENERATE = os.path.join(ROOT, "offsets", "generate.py")


def run_generate(*arguments):
    return subprocess.run([sys.executable, GENERATE, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)


def with_headers():
    """Without debug builds: they have their release's headers and a macro that generate.py defines itself."""
    return [python for python in own_and_fetched_pythons() if python.kind != DEBUG]


@pytest.mark.pythons(which=with_headers)
def test_tables_agree_with_the_headers(python):
    if not os.path.exists(os.path.join(python.include, "Python.h")):
        missing("headers of Python " + python.name)
    run = run_generate("--check", python.include)
    assert run.returncode == 0, run.stdout
    build = "t" if python.kind == FREE_THREADED else ""
    assert ": %d.%d%s: agrees" % (python.version[:2] + (build,)) in run.stdout
    debug = ": %d.%dd: agrees" % python.version[:2]
    assert (debug in run.stdout) == (python.version < (3, 8))


def for_aarch64():
    """{name: (folder of Python.h, C library)} of the headers that can be compiled for aarch64.  Of pyenv's
    headers, only pyconfig.h is specific to x86-64, and no struct depends on it.  The system's headers
    refer to a pyconfig.h for aarch64 that is missing."""
    libraries = debian.find_c_library_headers()
    some_library = next(iter(libraries.values()), None)
    found = {python.name: (python.include, some_library) for python in own_pythons()
             if python.name.endswith("-pyenv") and some_library}
    for suite, library in libraries.items():
        for version in debian.SUITES[suite]:
            include = os.path.join(debian.headers_of(suite), "usr", "include", "python" + version)
            found["%s-%s" % (version, suite)] = include, library
    return found


@pytest.mark.prove("aarch64")
@pytest.mark.parametrize("name, headers", for_aarch64().items(), ids=for_aarch64())
def test_tables_hold_for_aarch64(name, headers, require):
    include, library = headers
    if not os.path.exists(os.path.join(include, "Python.h")):
        missing("headers of Python " + name)
    clang = require(os.environ.get("CLANG", "clang"))
    run = run_generate("--check", "--compiler",
                       "%s --target=aarch64-linux-gnu --sysroot=%s" % (clang, library), include)
    assert run.returncode == 0, run.stdout
    assert ": %s: agrees" % ".".join(name.split("-")[0].split(".")[:2]) in run.stdout


def test_architectures_that_disagree_are_reported(tmp_path):
    """An offset that differs between architectures is an error."""
    includes = [python.include for python in find_pythons() if python.version >= (3, 7) and
                os.path.exists(os.path.join(python.include, "Python.h"))]
    if not includes:
        missing("headers of a Python")
    run = run_generate("--check", "--compiler", "cc", "--compiler", "cc -fpack-struct=4",
                       includes[0])
    assert run.returncode == 1
    assert run.stdout.count("\n") == 1 and "tstate_thread_id" in run.stdout


def test_a_member_that_debug_builds_move_is_reported(tmp_path):
    """From 3.8 on, debug builds share the column of others.  So it must not have a member that Py_DEBUG
    moves."""
    # Fetched headers find their pyconfig.h only in their own folder.
    includes = [python.include for python in find_pythons()
                if python.version >= (3, 8) and not python.root and
                os.path.exists(os.path.join(python.include, "cpython", "pystate.h"))]
    if not includes:
        missing("headers of a Python")
    include = str(tmp_path / os.path.basename(includes[0]))
    shutil.copytree(includes[0], include)
    for name in "cpython/code.h", "code.h":
        path = os.path.join(include, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write("#ifdef Py_DEBUG\n#define MOVED long moved;\n#else\n#define MOVED\n#endif\n" +
                           re.sub(r"\bPyObject_(VAR_)?HEAD\b", r"\g<0> MOVED", text))
    run = run_generate("--check", include)
    assert run.returncode == 1
    assert "a debug build do not agree" in run.stdout and "code_name" in run.stdout


def rewrite(path, pattern, replacement):
    with open(path, encoding="utf-8") as file:
        text, count = re.subn(pattern, replacement, file.read())
    assert count == 1, path
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_micro_versions_with_a_column_of_their_own(tmp_path):
    """3.7.4 changed the alignment of the garbage collector's header.  Otherwise 3.7.3 is the same."""
    includes = [python.include for python in find_pythons() if python.version[:2] == (3, 7) and
                os.path.exists(os.path.join(python.include, "Python.h"))]
    if not includes:
        missing_without_pyenv("Python 3.7 with headers")
    include = str(tmp_path / "python3.7m")
    shutil.copytree(includes[0], include)
    rewrite(os.path.join(include, "objimpl.h"), r"long double dummy;", "double dummy;")
    rewrite(os.path.join(include, "patchlevel.h"), r"(PY_MICRO_VERSION\s+)\d+", r"\g<1>3")
    run = run_generate("--check", include)
    assert run.returncode == 0, run.stdout
    assert ": 3.7.3: agrees" in run.stdout
    assert ": 3.7.3d: agrees" in run.stdout


KNOWS = """
#include <stdio.h>
#include "offsets.h"

int main(void)
{
	struct offsets offsets;

	puts(offsets__versions());
	return offsets__lookup(0x%02x%02x00f0, false, &offsets);
}
"""


def test_a_version_is_one_column(tmp_path):
    """The column that is generated from a version's headers is all that the build needs to support it."""
    newest = max((python for python in find_pythons()
                  if os.path.exists(os.path.join(python.include, "Python.h"))),
                 key=lambda python: python.version)
    major, minor = newest.version[0], newest.version[1] + 1
    folder, include = tmp_path / "include", tmp_path / "include" / ("python%d.%d" % (major, minor))
    shutil.copytree(newest.include, include)
    for beside in os.listdir(os.path.dirname(newest.include)):
        if beside != os.path.basename(newest.include):  # Debian's pyconfig.h is in one of these
            os.symlink(os.path.join(os.path.dirname(newest.include), beside), folder / beside)
    rewrite(include / "patchlevel.h", r"(PY_MINOR_VERSION\s+)\d+", r"\g<1>%d" % minor)
    tree = tmp_path / "tree"
    for part in "offsets", "bpf":
        shutil.copytree(os.path.join(ROOT, part), tree / part)
    shutil.copy(os.path.join(ROOT, "Makefile"), tree)
    run = subprocess.run([sys.executable, tree / "offsets" / "generate.py", include],
                         stdout=subprocess.PIPE, universal_newlines=True, check=True)
    assert ": %d.%d: agrees" % (major, minor) in run.stdout
    with open(tree / "knows.c", "w", encoding="utf-8") as file:
        file.write(KNOWS % (major, minor))
    subprocess.run(["make", "-s", "OUTPUT=output", "output/offset_tables.h"], cwd=tree, check=True)
    subprocess.run(["cc", "-o", "knows", "-Ioutput", "-Ioffsets", "-Ibpf", "knows.c",
                    "offsets/offsets.c"], cwd=tree, check=True)
    run = subprocess.run([tree / "knows"], stdout=subprocess.PIPE, universal_newlines=True)
    assert run.returncode == 0
    assert "%d.%d" % (major, minor) in run.stdout.rstrip().split(", ")


def test_a_column_is_renewed(tmp_path):
    """A wrong cell and a missing row are found and written.  Other columns have "?" in the new row."""
    include = next((python.include for python in find_pythons()
                    if os.path.exists(os.path.join(python.include, "Python.h"))), None)
    if not include:
        missing("headers of a Python")
    tree = tmp_path / "offsets"
    shutil.copytree(os.path.join(ROOT, "offsets"), tree)
    table = tree / "table.txt"
    rewrite(table, r"(?m)^code_name .*\n", "")
    rewrite(table, r"(?m)^tstate_thread_id .*", lambda row: re.sub(r"\d+", "1", row[0]))
    command = [sys.executable, str(tree / "generate.py"), include]
    check = subprocess.run(command + ["--check"], stdout=subprocess.PIPE, universal_newlines=True)
    assert check.returncode == 1
    assert re.search(r": tstate_thread_id is \d\d+, not 1; code_name is \d+, not \?$",
                     check.stdout, re.M)
    assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
    assert subprocess.run(command + ["--check"], stdout=subprocess.DEVNULL).returncode == 0
    renewed = {line.split()[0]: line.split() for line in table.read_text().splitlines()}
    assert {"?"} < set(renewed["code_name"]) and len(set(renewed["tstate_thread_id"])) == 3
    assert len(renewed["code_name"]) == len(renewed["version"])


def test_missing_headers_are_reported(tmp_path):
    run = run_generate("--check", str(tmp_path))
    assert run.returncode == 1
    assert run.stdout.count("\n") == 1 and str(tmp_path) in run.stdout
