# SPDX-License-Identifier: BSD-2-Clause
"""A 32-bit interpreter, which is not supported.  It is Debian's for i386, in
$PYBPFPROF_TEST_CACHE/i386/SUITE, a root folder like those of debian.py."""

import os

import debian

SUITE, VERSION = "bookworm", "3.11"
PACKAGES = ["python%s-minimal" % VERSION]
ROOT = os.path.join(debian.CACHE, "i386", SUITE)
COMMAND = (debian.ENTER, ROOT, "/usr/bin/python" + VERSION)


def is_there(_name):
    return debian.has_recipe(ROOT, " ".join(PACKAGES))


def fetch():
    """Fetches it if it is missing.  Returns its debian.Outcome."""
    return debian.provide(SUITE + " for i386", is_there, lambda _name: debian.fetch_root(
        SUITE, "i386", "python" + VERSION, PACKAGES, ROOT))
