# SPDX-License-Identifier: BSD-2-Clause
"""The generated offset tables, against the headers of every interpreter here."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, missing, missing_without_pyenv
from pythons import FREE_THREADED, debian, find_pythons, own_pythons

GENERATE = os.path.join(ROOT, "offsets", "generate.py")


def run_generate(*arguments):
    return subprocess.run([sys.executable, GENERATE, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)


def test_tables_agree_with_the_headers(python):
    if not os.path.exists(os.path.join(python.include, "Python.h")):
        missing("headers of Python " + python.name)
    run = run_generate("--check", python.include)
    assert run.returncode == 0, run.stdout
    build = "t" if python.kind == FREE_THREADED else ""
    assert "cpython-%d.%d%s.h: agrees" % (python.version[:2] + (build,)) in run.stdout


def for_aarch64():
    """Each folder of Python.h that can be compiled for aarch64, by a name for it, with the C library
    to use.  pyenv's headers are of x86-64 only in pyconfig.h, whose settings have no part in any
    struct; the system's refer to a pyconfig.h for aarch64 that is not there."""
    libraries = debian.find_c_library_headers()
    some_library = next(iter(libraries.values()), None)
    found = {python.name: (python.include, some_library) for python in own_pythons()
             if python.name.endswith("-pyenv") and some_library}
    for suite, library in libraries.items():
        for version in debian.SUITES[suite]:
            include = os.path.join(debian.headers_of(suite), "usr", "include", "python" + version)
            found["%s-%s" % (version, suite)] = include, library
    return found


@pytest.mark.parametrize("name, headers", for_aarch64().items(), ids=for_aarch64())
def test_tables_hold_for_aarch64(name, headers, require):
    include, library = headers
    if not os.path.exists(os.path.join(include, "Python.h")):
        missing("headers of Python " + name)
    clang = require(os.environ.get("CLANG", "clang"))
    run = run_generate("--check", "--compiler",
                       "%s --target=aarch64-linux-gnu --sysroot=%s" % (clang, library), include)
    assert run.returncode == 0, run.stdout
    assert "cpython-%s.h: agrees" % ".".join(name.split("-")[0].split(".")[:2]) in run.stdout


def test_architectures_that_disagree_are_told(tmp_path):
    """What a table would say of one architecture alone is written for none."""
    includes = [python.include for python in find_pythons() if python.version >= (3, 7) and
                os.path.exists(os.path.join(python.include, "Python.h"))]
    if not includes:
        missing("headers of a Python")
    run = run_generate("--check", "--compiler", "cc", "--compiler", "cc -fpack-struct=4",
                       includes[0])
    assert run.returncode == 1
    assert run.stdout.count("\n") == 1 and "tstate_thread_id" in run.stdout


def rewrite(path, pattern, replacement):
    with open(path, encoding="utf-8") as file:
        text, count = re.subn(pattern, replacement, file.read())
    assert count == 1, path
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_micro_versions_with_a_table_of_their_own(tmp_path):
    """3.7.4 aligned what the garbage collector has before each object; else 3.7.3 is the same."""
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
    assert "cpython-3.7.0.h: agrees" in run.stdout


def test_no_headers_are_told(tmp_path):
    run = run_generate("--check", str(tmp_path))
    assert run.returncode == 1
    assert run.stdout.count("\n") == 1 and str(tmp_path) in run.stdout
