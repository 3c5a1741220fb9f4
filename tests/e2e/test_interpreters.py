# SPDX-License-Identifier: BSD-2-Clause
"""The tests' own interpreters: how they are fetched, started and reported."""

import collections
import os
import subprocess
import sys

import pytest

from conftest import ROOT, missing
from pythons import build, debian, find_pythons

sys.path.insert(0, os.path.join(ROOT, "tests"))
import matrix  # noqa: E402

SCRIPTS = os.path.join(ROOT, "tests", "interpreters")

# A stand-in for apt-get: it succeeds unless its arguments contain the given word.
FAKE_APT_GET = """#!/bin/sh
case "$*" in
*indextargets*)
	. /etc/os-release
	echo "$VERSION_CODENAME main http://mirror.invalid/debian"
	;;
*%s*)
	echo "W: something else"
	echo "E: the reason"
	exit 100
	;;
esac
"""


def provide(cache, script, *names, path=""):
    return subprocess.run([sys.executable, os.path.join(SCRIPTS, script), *names],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                          env=dict(os.environ, PYBPFPROF_TEST_CACHE=str(cache),
                                   PATH="%s:%s" % (path, os.environ["PATH"])))


@pytest.mark.parametrize("script, name, word, outcome", [
    ("debian.py", "sid", "update", "unreachable"), ("debian.py", "sid", "install", "failed"),
    ("build.py", "3.13t", "update", "unreachable"), ("build.py", "3.13t", "source", "failed"),
])
def test_a_failed_fetch_is_reported_and_leaves_nothing(tmp_path, script, name, word, outcome):
    apt_get = tmp_path / "apt-get"
    apt_get.write_text(FAKE_APT_GET % word)
    apt_get.chmod(0o755)
    ended = provide(tmp_path / "cache", script, name, path=tmp_path)
    assert ended.returncode == ["unreachable", "failed"].index(outcome) + 1
    assert ended.stdout.splitlines()[-1] == "interpreters: %s %s E: the reason" % (name, outcome)
    assert os.listdir(str(tmp_path / "cache")) == ["lock"]


def test_a_present_interpreter_is_not_made_again():
    there = {"debian.py": [name for name in debian.SUITES if debian.is_there(name)],
             "build.py": [name for name in build.BUILDS if build.is_there(name)]}
    if not there["debian.py"]:
        missing("a suite of Debian in the cache")
    for script, names in there.items():
        if names:
            ended = provide(debian.CACHE, script, *names, path="/nonexistent")
            said = ["interpreters: %s there" % name for name in names]
            assert ended.stdout.splitlines() == said


def test_each_fetched_interpreter_has_its_own_root():
    pythons = [python for python in find_pythons() if python.root]
    if not pythons:
        missing("a suite of Debian in the cache")
    ask = ("import os, sys; "
           "print('%d %s %s' % (os.stat('/usr').st_ino, os.getcwd(), sys.executable))")
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        before = mounts.read()
    for python in pythons:
        said = subprocess.check_output([*python.command, "-c", ask], universal_newlines=True)
        inode = os.stat(os.path.join(python.root, "usr")).st_ino
        assert said.split() == [str(inode), os.getcwd(), python.path]
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        assert mounts.read() == before


@pytest.mark.check
def test_table():
    result = collections.namedtuple("Result", "outcome properties")

    def made(outcome, python, proves, **figure):
        return result(outcome, dict(figure, python=python, proves=proves))

    assert matrix.table([result("passed", {})]) == ""
    assert matrix.table([
        made("passed", "3.10.1-a", "lines"), made("passed", "3.9.2-b", "lines"),
        made("failed", "3.9.2-b", "lines"), made("passed", "3.9.2-b", "shares", figure="0 of 7"),
        made("passed", "3.10.1-c", "shares"), made("skipped", "3.10.1-c", "shares"),
        result("failed", {}),
    ]) == (
        "| CPython  | lines  | shares  |\n"
        "| -------- | ------ | ------- |\n"
        "| 3.9.2-b  | FAILED | 0 of 7  |\n"
        "| 3.10.1-a | yes    | -       |\n"
        "| 3.10.1-c | -      | skipped |\n")
