# SPDX-License-Identifier: BSD-2-Clause
"""Pythons that are not supported, besides that of i386.py: Debian's PyPy, and an emulator that
runs one of arm64.py's.  They are in $PYBPFPROF_TEST_CACHE/pypy/SUITE and
$PYBPFPROF_TEST_CACHE/qemu/SUITE, root folders like those of debian.py."""

import os

import arm64
import debian

SUITE, FOREIGN_SUITE = "bookworm", "trixie"
PROGRAMS = {"pypy": ("pypy3", ["pypy3"]), "qemu": ("qemu-aarch64-static", ["qemu-user-static"])}


def root_of(name):
    return os.path.join(debian.CACHE, name, SUITE)


def is_there(name):
    return debian.has_recipe(root_of(name), " ".join(PROGRAMS[name][1]))


def fetch_one(name):
    program, packages = PROGRAMS[name]
    debian.fetch_root(SUITE, debian.native_architecture(), program, packages, root_of(name))


def fetch(name):
    """Fetches it if it is missing.  Returns its debian.Outcomes."""
    outcomes = [debian.provide(name, is_there, fetch_one)]
    return outcomes + arm64.fetch((FOREIGN_SUITE,)) if name == "qemu" else outcomes


def command_of(name):
    """The command that starts its Python."""
    program = "/usr/bin/" + PROGRAMS[name][0]
    if name == "pypy":
        return [debian.ENTER, root_of(name), program]
    root = arm64.root_of(FOREIGN_SUITE)
    return [root_of(name) + program, "-L", root, "-E", "PYTHONHOME=%s/usr" % root,
            root + "/usr/bin/python" + arm64.PYTHONS[FOREIGN_SUITE]]
