# SPDX-License-Identifier: BSD-2-Clause
"""The contents of a machine of this machine's architecture: its programs and Pythons."""

import os
import platform
import re
import shutil
import subprocess
import sys

import image

sys.path.insert(0, os.path.join(os.path.dirname(image.HERE), "e2e"))
import pythons as all_pythons  # noqa: E402

ARCHITECTURE = platform.machine()
OUTPUT = ""
WANTED = (2, 7), (3, 8), (3, 11), (3, 13), (3, 14)
TOOLS = "busybox", "runc"
# Built by make for the jobs.
BUILT = ("verifier_cost.so",)
LIBRARY = re.compile(r"(?:=> |^\s*)(/\S+) \(0x")


def pythons():
    """One of each wanted version; 3.9 may replace 3.8."""
    found = {python.version[:2]: python for python in all_pythons.one_of_each_minor()}
    return [found[version] for version in
            ((3, 9) if version == (3, 8) and version not in found else version
             for version in WANTED) if version in found]


def find(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def missing(tools=TOOLS):
    """The missing programs that a machine needs."""
    return [name for name in (*tools, "cpio") if not find(name)]


def tools(names=TOOLS):
    """{name there: path here} of programs in /usr/bin."""
    return {name: find(name) for name in names}


def add_libraries(root, path):
    """Adds the loader and libraries of a program; nothing for a static one."""
    listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            universal_newlines=True).stdout
    for line in listed.splitlines():
        library = LIBRARY.search(line)
        if library:
            image.add_file(root, library.group(1), library.group(1))


def add_agent(root, programs):
    """Adds the Python that runs these programs there; returns its path."""
    path = os.path.realpath(sys.executable)
    image.add_closure(root, [path], programs)
    return path


def add_python(root, python, programs):
    image.add_closure(root, python.command, programs)
