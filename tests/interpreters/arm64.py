#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fetches arm64 packages of Debian's suites, for tests on other architectures.

    sudo tests/interpreters/arm64.py [SUITE...]

Each suite goes to $PYBPFPROF_TEST_CACHE/arm64/SUITE, as a root folder like those of debian.py: an
interpreter and all its dependencies.  The one of SYSROOT also has the headers and libraries for
`make ARCH=arm64`, and a shell.
"""

import os
import sys

import debian
from debian import CACHE

ARCHITECTURE = "arm64"
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
SYSROOT = "bookworm"
LIBRARIES = ("busybox-static", "libc6-dev", "libbpf-dev", "libcurl4-openssl-dev", "libiberty-dev", "libjansson-dev",
             "libmicrohttpd-dev", "libpcre2-dev", "libprotobuf-c-dev", "libsqlite3-dev", "libyaml-dev", "uthash-dev",
             "zlib1g-dev")


def root_of(suite):
    return os.path.join(CACHE, ARCHITECTURE, suite)


def packages_of(suite):
    return ["python" + PYTHONS[suite], *(LIBRARIES if suite == SYSROOT else ())]


def recipe_of(suite):
    return " ".join(packages_of(suite))


def is_there(suite):
    return debian.has_recipe(root_of(suite), recipe_of(suite))


def fetch_one(suite):
    debian.fetch_root(suite, ARCHITECTURE, "python" + PYTHONS[suite], packages_of(suite), root_of(suite))


def fetch(suites=tuple(PYTHONS)):
    """Fetches the missing suites.  Returns a debian.Outcome for each."""
    return [debian.provide(suite, is_there, fetch_one)._replace(name=suite + " for " + ARCHITECTURE)
            for suite in suites]


if __name__ == "__main__":
    sys.exit(debian.run_as_program(PYTHONS, fetch, __doc__))
