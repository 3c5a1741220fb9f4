# SPDX-License-Identifier: BSD-2-Clause
"""Fetches Debian's kernels for the tests, as tests/interpreters/debian.py does its interpreters.

A kernel stays in the tests' cache, as kernels/ARCHITECTURE/NAME/vmlinuz-RELEASE, until it is
removed by hand.  NAME is what a test calls it; which release that is, its suite says.  What an
architecture's own is, the module of its name beside this one says.
"""

import glob
import os
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


def place(name, architecture):
    return os.path.join(debian.CACHE, "kernels", architecture.__name__, name)


def find(name, architecture):
    """The path of a kernel in the cache, or None."""
    found = glob.glob(os.path.join(place(name, architecture), "vmlinuz-*"))
    return found[0] if found else None


def download(apt, package, folder):
    """Unpacks the kernel of PACKAGE into FOLDER."""
    packages = [package]
    while packages:
        archives = apt.alone(packages)
        packages = []
        for archive in archives:
            debian.run(["dpkg-deb", "-x", archive, folder], debian.Failure)
            depends = debian.run(["dpkg-deb", "-f", archive, "Depends"], debian.Failure)
            packages += NEXT_PACKAGE.findall(depends)[:1]


def fetch_from(suite, name, architecture):
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=debian.CACHE) as folder:
        apt = debian.Apt(suite, tempfile.mkdtemp(dir=folder), architecture.DEBIAN_NAME)
        root = os.path.join(folder, "root")
        download(apt, architecture.KERNEL_PACKAGE, root)
        found = [path for pattern in PLACES for path in glob.glob(os.path.join(root, pattern))]
        if len(found) != 1:
            raise debian.Failure("%s has %d kernels" % (architecture.KERNEL_PACKAGE, len(found)))
        release = RELEASE.search(os.path.relpath(found[0], root)).group()
        ready = os.path.join(folder, "ready")
        os.mkdir(ready)
        shutil.move(found[0], os.path.join(ready, "vmlinuz-" + release))
        os.makedirs(os.path.dirname(place(name, architecture)), exist_ok=True)
        os.rename(ready, place(name, architecture))


def fetch(name, architecture):
    """The path of a kernel; debian.Unreachable or debian.Failure says why there is none."""
    if not find(name, architecture):
        with debian.only_one():
            if not find(name, architecture):
                print("kernel %s for %s: fetching it from %s"
                      % (name, architecture.__name__, SUITES[name]), flush=True)
                fetch_from(SUITES[name], name, architecture)
    return find(name, architecture)


def release(path):
    return os.path.basename(path).partition("-")[2]
