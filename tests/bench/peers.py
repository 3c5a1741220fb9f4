# SPDX-License-Identifier: BSD-2-Clause
"""Provides other profilers, in $PYBPFPROF_TEST_CACHE/peers: the package index's newest.

They stay there until the folder is removed by hand.
"""

import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
import debian  # noqa: E402

FOLDER = os.path.join(debian.CACHE, "peers")
PROGRAMS = os.path.join(FOLDER, "bin")
# A program of each package.  It exists once the package is installed.
PACKAGES = {"py-spy": "py-spy", "austin-dist": "austin", "austin-python": "mojo2austin"}
TIMEOUT_S = 180


def program(name):
    return os.path.join(PROGRAMS, name)


def run(command, timeout=TIMEOUT_S):
    """The command's output, or None if it fails."""
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, timeout=timeout, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None


def install():
    """Installs each package separately, so a failure does not affect the others."""
    missing = [name for name in PACKAGES if not os.path.exists(program(PACKAGES[name]))]
    if missing and not os.path.exists(program("pip")):
        run(["/usr/bin/python3", "-m", "venv", FOLDER])
    for name in missing:
        print("peers: fetching %s" % name, flush=True)
        if run([program("pip"), "install", "-q", "--disable-pip-version-check", name]) is None:
            print("peers: %s cannot be installed" % name, flush=True)


def loaders():
    """Commands that start a program with the C library of a newer Debian suite."""
    for suite, root in {suite: root for suite, root, _ in debian.find_interpreters()}.items():
        if suite in ("trixie", "sid"):
            for loader in glob.glob(os.path.join(root, "usr/lib/*/ld-linux-*.so.*")):
                yield [loader, "--library-path", os.path.dirname(loader)]


def runnable(name):
    """The command that starts a package's program; just its path if none works."""
    for prefix in ([], *loaders()):
        if run([*prefix, program(name), "--version"], timeout=20) is not None:
            return [*prefix, program(name)]
    return [program(name)]
