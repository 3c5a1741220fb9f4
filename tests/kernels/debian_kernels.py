# SPDX-License-Identifier: BSD-2-Clause
"""Fetches Debian's kernels for the tests, as tests/interpreters/debian.py does its interpreters.

A kernel stays in the tests' cache, as kernels/MACHINE/NAME/vmlinuz-RELEASE, until it is
removed by hand.  NAME is what a test calls it; which release that is, its suite says.
"""

import glob
import importlib
import os
import platform
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
import debian  # noqa: E402

SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "newest": "sid"}
# A metapackage leads to an image, and an image without a kernel to that.
NEXT_PACKAGE = re.compile(r"\blinux-(?:image|binary)-\d[^ ,|]*")
PLACES = "boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"
RELEASE = re.compile(r"\d+\.\d+[^/]*")

architecture = importlib.import_module(platform.machine())


def place(name):
    return os.path.join(debian.CACHE, "kernels", platform.machine(), name)


def find(name):
    """The path of a kernel in the cache, or None."""
    found = glob.glob(os.path.join(place(name), "vmlinuz-*"))
    return found[0] if found else None


def download(apt, folder):
    """Unpacks the architecture's kernel into FOLDER."""
    packages = [architecture.KERNEL_PACKAGE]
    while packages:
        archives = apt.alone(packages)
        packages = []
        for archive in archives:
            debian.run(["dpkg-deb", "-x", archive, folder], debian.Failure)
            depends = debian.run(["dpkg-deb", "-f", archive, "Depends"], debian.Failure)
            packages += NEXT_PACKAGE.findall(depends)[:1]


def fetch_from(suite, name):
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=debian.CACHE) as folder:
        apt = debian.Apt(suite, tempfile.mkdtemp(dir=folder), architecture.DEBIAN_NAME)
        root = os.path.join(folder, "root")
        download(apt, root)
        found = [path for pattern in PLACES for path in glob.glob(os.path.join(root, pattern))]
        if len(found) != 1:
            raise debian.Failure("%s has %d kernels" % (architecture.KERNEL_PACKAGE, len(found)))
        release = RELEASE.search(os.path.relpath(found[0], root)).group()
        ready = os.path.join(folder, "ready")
        os.mkdir(ready)
        shutil.move(found[0], os.path.join(ready, "vmlinuz-" + release))
        os.makedirs(os.path.dirname(place(name)), exist_ok=True)
        os.rename(ready, place(name))


def fetch(name):
    """The path of a kernel; debian.Unreachable or debian.Failure says why there is none."""
    if not find(name):
        with debian.only_one():
            if not find(name):
                print("kernel %s: fetching it from %s" % (name, SUITES[name]), flush=True)
                fetch_from(SUITES[name], name)
    return find(name)


def release(path):
    return os.path.basename(path).partition("-")[2]
