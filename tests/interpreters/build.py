#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds interpreters for the tests that no package contains.

    sudo tests/interpreters/build.py [BUILD...]

The source is CPython's in Debian's source package, which apt-get verifies as debian.py describes.
This machine's own tools compile it.  Its prefix is $PYBPFPROF_TEST_CACHE/built/BUILD.
"""

import collections
import glob
import os
import shutil
import sys
import tempfile
import time

import debian
from debian import CACHE, Failure, say

SUITE = "trixie"
PACKAGE = "python3.13"
BUILD_TIMEOUT_S = 3600

# options: of configure; program: in the prefix's bin; kind: as in tests/e2e/pythons.py; modules:
# must be importable; environment: of configure and make; edit: a file, a text in it, and its
# replacement.
Build = collections.namedtuple("Build", "options program kind modules environment edit",
                               defaults=("ctypes, hashlib, ssl, zlib", {}, None))

HERE = os.path.dirname(os.path.abspath(__file__))
# Debian has none of CPython's optional libraries for musl.
MUSL = {"CC": os.path.join(HERE, "musl-gcc.sh"), "PKG_CONFIG": "false"}

BUILDS = {
    "3.13t": Build("--disable-gil", "python3.13t", "free-threaded"),
    "3.13musl": Build("--without-static-libpython", "python3.13", "musl", "_thread", MUSL),
    # It requires an LLVM that some Debian suites lack; the next version compiles it as well.
    "3.13jit": Build("--enable-experimental-jit", "python3.13", "jit",
                     environment={"PYTHON_FOR_REGEN": sys.executable},
                     edit=("Tools/jit/_llvm.py", "_LLVM_VERSION = 18", "_LLVM_VERSION = 19")),
}
OPTIONS = "--quiet --disable-test-modules --without-ensurepip"


def prefix_of(name):
    return os.path.join(CACHE, "built", name)


def recipe_of(name):
    return "%s %s %s" % (PACKAGE, OPTIONS, BUILDS[name].options)


def is_there(name):
    return debian.has_recipe(prefix_of(name), recipe_of(name))


def fetch_source(folder):
    """Unpacks the interpreter's original sources from the source package."""
    apt = debian.Apt(SUITE, tempfile.mkdtemp(dir=folder), debian.native_architecture(),
                     sources=True)
    archive = next(iter(apt.source(PACKAGE)), None)
    if not archive:
        raise Failure("the source package has no original archive")
    unpacked = os.path.join(folder, "unpacked")
    shutil.unpack_archive(archive, unpacked)
    return glob.glob(os.path.join(unpacked, "*", ""))[0]


def change_source(source, edit):
    path, before, after = edit
    with open(os.path.join(source, path), "r+", encoding="utf-8") as file:
        text = file.read()
        if before not in text:
            raise Failure("%s has no %r" % (path, before))
        file.seek(0)
        file.truncate()
        file.write(text.replace(before, after))


def compile_build(name, folder):
    """Compiles one interpreter in FOLDER and installs it."""
    source = fetch_source(folder)
    if BUILDS[name].edit:
        change_source(source, BUILDS[name].edit)
    installed = os.path.join(folder, "installed")
    options = [*OPTIONS.split(), *BUILDS[name].options.split(), "--prefix=" + prefix_of(name)]
    jobs = "-j%d" % len(os.sched_getaffinity(0))
    # The options of the make that runs the tests do not apply to this one.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    environment.update(BUILDS[name].environment)
    for command in (["./configure", *options], ["make", "-s", jobs],
                    ["make", "-s", "altinstall", "DESTDIR=" + installed]):
        debian.run(command, Failure, timeout=BUILD_TIMEOUT_S, cwd=source, env=environment)
    debian.run([os.path.join(source, "python"), "-c", "import " + BUILDS[name].modules], Failure)
    root = installed + prefix_of(name)
    debian.write_recipe(root, recipe_of(name))
    debian.move_into_place(root, prefix_of(name), folder)


def build_one(name):
    started = time.monotonic()
    say("%s: building; this takes some minutes" % name)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=CACHE) as folder:
        compile_build(name, folder)
    say("%s: there, after %.0f s" % (name, time.monotonic() - started))


def build(names=tuple(BUILDS)):
    """Builds the missing interpreters.  Returns a debian.Outcome for each."""
    return [debian.provide(name, is_there, build_one) for name in names]


def find_interpreters():
    """(kind, path) of every interpreter in the cache."""
    return [(what.kind, os.path.join(prefix_of(name), "bin", what.program))
            for name, what in BUILDS.items() if is_there(name)]


if __name__ == "__main__":
    sys.exit(debian.run_as_program(BUILDS, build, __doc__))
