# SPDX-License-Identifier: BSD-2-Clause
"""Fetches Debian's kernels for the tests, as tests/interpreters/debian.py fetches interpreters.

A kernel stays in the tests' cache, as kernels/ARCHITECTURE/NAME/vmlinuz-RELEASE, until it is
removed by hand.  The only module that a test needs, overlay.ko, is beside it.  NAME is the tests'
name for the kernel; its suite determines the release.  The module named ARCHITECTURE, beside this
one, has the properties of the architecture.
"""

import glob
import lzma
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
import debian  # noqa: E402

SUITES = {"5.10": "bullseye", "6.1": "bookworm", "6.12": "trixie", "newest": "sid"}
OLDEST, *_, NEWEST = SUITES
# A metapackage depends on an image, and an empty image on its kernel and its modules.
NEXT_PACKAGE = re.compile(r"\blinux-(?:image|binary|modules)-\d[^ ,|]*")
KERNEL = "boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz"
MODULE = "overlay.ko"
MODULE_PLACES = tuple(folder + "/modules/*/kernel/fs/overlayfs/%s*" % MODULE
                      for folder in ("lib", "usr/lib"))
RECIPE = "with " + MODULE
RELEASE = re.compile(r"\d+\.\d+[^/]*")


def place(name, architecture):
    return os.path.join(debian.CACHE, "kernels", architecture.__name__, name)


def find(name, architecture):
    """The path of a kernel in the cache, or None."""
    folder = place(name, architecture)
    if not debian.has_recipe(folder, RECIPE):
        return None
    return glob.glob(os.path.join(folder, "vmlinuz-*"))[0]


def download(apt, package, folder):
    """Unpacks the kernel of PACKAGE, and its modules, into FOLDER."""
    packages = [package]
    while packages:
        archives = apt.alone(packages)
        packages = []
        for archive in archives:
            debian.run(["dpkg-deb", "-x", archive, folder], debian.Failure)
            depends = debian.run(["dpkg-deb", "-f", archive, "Depends"], debian.Failure)
            packages += NEXT_PACKAGE.findall(depends)


def find_unpacked(root, patterns):
    found = [path for pattern in patterns for path in glob.glob(os.path.join(root, pattern))]
    if len(found) != 1:
        raise debian.Failure("its packages have %d of %s" % (len(found), " or ".join(patterns)))
    return found[0]


def extract_module(path, target):
    """Unpacks a module so that the machines' busybox can load it."""
    read = lzma.open if path.endswith(".xz") else open
    with read(path, "rb") as packed, open(target, "wb") as file:
        shutil.copyfileobj(packed, file)


def fetch_from(suite, name, architecture):
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=debian.CACHE) as folder:
        apt = debian.Apt(suite, tempfile.mkdtemp(dir=folder), architecture.DEBIAN_NAME)
        root = os.path.join(folder, "root")
        download(apt, architecture.KERNEL_PACKAGE, root)
        kernel = find_unpacked(root, KERNEL)
        release = RELEASE.search(os.path.relpath(kernel, root)).group()
        ready = os.path.join(folder, "ready")
        os.mkdir(ready)
        shutil.move(kernel, os.path.join(ready, "vmlinuz-" + release))
        extract_module(find_unpacked(root, MODULE_PLACES), os.path.join(ready, MODULE))
        debian.write_recipe(ready, RECIPE)
        debian.move_into_place(ready, place(name, architecture), folder)


def fetch(name, architecture):
    """The path of a kernel.  Raises debian.Unreachable or debian.Failure."""
    if not find(name, architecture):
        with debian.only_one():
            if not find(name, architecture):
                print("kernel %s for %s: fetching it from %s"
                      % (name, architecture.__name__, SUITES[name]), flush=True)
                fetch_from(SUITES[name], name, architecture)
    return find(name, architecture)


def module_of(path):
    return os.path.join(os.path.dirname(path), MODULE)


def release(path):
    return os.path.basename(path).partition("-")[2]
