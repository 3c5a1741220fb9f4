# SPDX-License-Identifier: BSD-2-Clause
"""The contents of an aarch64 machine on a host of another architecture: Debian's packages.

A Python's twin, which is the same suite's Python for this machine, tells which modules a program
needs.  Modules are the same for both, also compiled ones.  Machine code comes from the packages.
"""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import image

sys.path[:0] = [os.path.join(os.path.dirname(image.HERE), name) for name in ("e2e", "interpreters")]
import arm64  # noqa: E402
import debian  # noqa: E402
import pythons as all_pythons  # noqa: E402

ARCHITECTURE = "aarch64"
OUTPUT = "arm64"  # as in make's ARCH
WANTED = (3, 11), (3, 13)
BUILT = ("verifier_cost.so",)
LIBRARIES = "/usr/lib/aarch64-linux-gnu"
NEEDED = re.compile(r"program interpreter: (/[^\]]+)|\(NEEDED\).*\[(.+)\]")
# In a module's name: cpython-311-x86_64-linux-gnu.so.
SUFFIX = re.compile(r"(\.cpython-\d+)-\w+-linux-gnu\.so$")
ELF = b"\x7fELF"


def origin_of(python):
    return python.root or arm64.root_of(arm64.SYSROOT)


def is_twin(python):
    """Whether the packages have exactly that version."""
    with open(origin_of(python) + python.path, "rb") as file:
        return b"\0%d.%d.%d" % python.version in file.read()


@functools.lru_cache(maxsize=None)
def pythons():
    """Pythons that have a twin.  Their command is the twin's, for this machine."""
    found = []
    for suite, root, version in debian.find_interpreters():
        if arm64.PYTHONS.get(suite) != version or not arm64.is_there(suite):
            continue
        twin = all_pythons.describe("/usr/bin/python" + version, suite, root)
        python = twin._replace(name="%d.%d.%d-aarch64" % twin.version,
                               root="" if suite == arm64.SYSROOT else arm64.root_of(suite))
        if is_twin(python):
            found.append(python)
    return found


def missing():
    """The missing requirements for a machine."""
    tools = [name for name in ("cpio", "readelf") if not shutil.which(name)]
    has_agent = any(not python.root for python in pythons())
    return tools + ["Python for aarch64"] * (not has_agent)


def tools():
    """{name there: path here} of programs in /usr/bin."""
    return {"busybox": arm64.root_of(arm64.SYSROOT) + "/bin/busybox"}


def needed_by(path):
    """The names of the loader and libraries of a program or a library."""
    listed = subprocess.run(["readelf", "--wide", "--segments", "--dynamic", path], check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            universal_newlines=True).stdout
    return [loader or os.path.join(LIBRARIES, library)
            for loader, library in NEEDED.findall(listed)]


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(len(ELF)) == ELF


def add_libraries(root, path, origin=arm64.root_of(arm64.SYSROOT)):
    """Adds the loader and libraries of a program; nothing for a static one."""
    for name in needed_by(path) if is_elf(path) else ():
        if not os.path.exists(root + name):
            image.add_file(root, origin + name, name)
            add_libraries(root, origin + name, origin)


def add_module(root, twin, name, origin):
    """Adds NAME, which the twin has loaded and which is in the folder TWIN: its executable, a
    module, or a library.  The foreign Python has libraries of its own."""
    if not is_elf(twin + name):
        image.add_file(root, twin + name, name)
    elif os.path.dirname(name) == "/usr/bin" or SUFFIX.search(name):
        name = SUFFIX.sub(r"\1-aarch64-linux-gnu.so", name)
        image.add_file(root, origin + name, name)
        add_libraries(root, origin + name, origin)


def add_python(root, python, programs):
    with tempfile.TemporaryDirectory() as twin:
        image.add_closure(twin, python.command, programs)
        for folder, _, names in os.walk(twin):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    add_module(root, twin, path[len(twin):], origin_of(python))


def add_agent(root, programs):
    """Adds the Python that runs these programs there; returns its path."""
    python = next(python for python in pythons() if not python.root)
    add_python(root, python, programs)
    return python.path
