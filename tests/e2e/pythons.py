# SPDX-License-Identifier: BSD-2-Clause
"""The CPython interpreters of this machine that the tests run on."""

import collections
import functools
import glob
import os
import pwd
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
import build  # noqa: E402
import debian  # noqa: E402

SUPPORTED = [(2, 7)] + [(3, minor) for minor in range(6, 16)]
OLDEST = SUPPORTED[0]

# path: the executable's path, as its own processes see it; version: (3, 8, 18); name: "3.8.18-pyenv",
# for test IDs; include: the folder of its Python.h, which need not exist; command: how to start it;
# root: "", or the folder whose /usr replaces this machine's; kind: RELEASE, FREE_THREADED, DEBUG or JIT.
Python = collections.namedtuple("Python", "path version name include command root kind")

RELEASE, FREE_THREADED, DEBUG, JIT = "release", "free-threaded", "debug", "jit"

ASK = """
import sys, sysconfig
print("%d.%d.%d" % sys.version_info[:3])
print(sysconfig.get_config_var("INCLUDEPY"))
print("free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else
      "debug" if hasattr(sys, "gettotalrefcount") else
      "jit" if "--enable-experimental-jit'" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
      and not hasattr(sys, "_jit") else "release")
print(hasattr(sys, "_jit") and sys._jit.is_available())
"""


def pyenv_root():
    """The folder of pyenv's interpreters; under sudo also looks in the caller's home."""
    if "PYENV_ROOT" in os.environ:
        return os.environ["PYENV_ROOT"]
    homes = [os.path.expanduser("~")]
    if "SUDO_USER" in os.environ:
        homes.append(pwd.getpwnam(os.environ["SUDO_USER"]).pw_dir)
    roots = [os.path.join(home, ".pyenv") for home in homes]
    return next(filter(os.path.isdir, roots), roots[0])


# The tier that runs: "check", "test", or a part of `make prove`; "" for tests chosen by hand.
TIER = os.environ.get("PYBPFPROF_TIER", "")
# The versions of tier 2: one interpreter of each row.
FEW = ((2, 7),), ((3, 9), (3, 8)), ((3, 11),), ((3, 13),), (SUPPORTED[-1], SUPPORTED[-2])


def wants_all():
    """Whether tests run on every interpreter, including those built from source and debug builds."""
    return TIER == "interpreters" or os.environ.get("PYBPFPROF_TEST_ALL") == "1"


def wants_each_version():
    return TIER in ("truth", "lines", "native", "events", "waiting") or wants_all()


def few_of(pythons):
    """One Python for each row of FEW, preferably the machine's own; the newest Python if there is none."""
    found = []
    for versions in FEW:
        alike = [python for version in versions for python in pythons
                 if python.version[:2] == version and python.kind == RELEASE]
        found += sorted(alike, key=lambda python: bool(python.root))[:1]
    return found or pythons[-1:]


def describe(path, origin, root="", jit=False):
    """The Python at PATH with its JIT on or off; None if it does not start or is not supported."""
    command = [debian.ENTER, root, path] if root else [path]
    if jit:
        command = ["/usr/bin/env", "PYTHON_JIT=1"] + command
    answer = subprocess.run(command + ["-E", "-s", "-c", ASK], cwd="/", stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, universal_newlines=True)
    if answer.returncode != 0:
        return None
    version_text, include, kind, has_jit = answer.stdout.splitlines()
    version = tuple(map(int, version_text.split(".")))
    if version[:2] not in SUPPORTED or (jit and has_jit == "False"):
        return None
    kind = JIT if jit else kind
    if root:
        include = os.path.join(debian.headers_of(origin), include.lstrip("/"))
    name = "-".join([version_text, origin] + [kind] * (kind not in (RELEASE, origin)))
    return Python(path, version, name, include, tuple(command), root, kind)


@functools.lru_cache(maxsize=None)
def debug_pythons():
    """Debian's debug builds."""
    found = [describe("/usr/bin/" + debian.DEBUG_PROGRAM % version, suite, root)
             for suite, root, version in debian.find_interpreters()]
    return sorted(filter(None, found), key=lambda python: python.version)


def find_uncommon():
    """Pythons built from source, debug builds, and Debian's with the JIT, which is off by default."""
    found = [describe(path, kind) for kind, path in build.find_interpreters() if kind != "musl"]
    found += debug_pythons()
    found += [describe("/usr/bin/python" + version, suite, root, jit=True)
              for suite, root, version in debian.find_interpreters()]
    return found


@functools.lru_cache(maxsize=None)
def find_pythons():
    """Every supported Python found, oldest first."""
    places = [("pyenv", os.path.join(pyenv_root(), "versions", "*", "bin", "python[23].*")),
              ("system", "/usr/bin/python[23].*")]
    found = [describe(path, origin)
             for origin, pattern in places
             for path in glob.glob(pattern)
             if re.search(r"/python[23]\.\d+$", path)]
    # This machine may itself run one of Debian's suites.
    of_system = {python.version for python in found if python and python.name.endswith("-system")}
    found += [python for suite, root, version in debian.find_interpreters()
              for python in [describe("/usr/bin/python" + version, suite, root)]
              if python and python.version not in of_system]
    found += find_uncommon() if wants_all() else []
    return sorted(filter(None, found), key=lambda python: (python.version, python.name))


def musl_pythons():
    """The Python built with musl instead of the GNU C library; it has few modules."""
    return [describe(path, kind) for kind, path in build.find_interpreters() if kind == "musl"]


def own_pythons():
    """The release builds installed on this machine."""
    return [python for python in find_pythons() if not python.root and python.kind == RELEASE]


def own_and_fetched_pythons():
    """The machine's own Pythons, and fetched ones of the other versions and kinds; all of them if
    wants_all()."""
    if wants_all():
        return find_pythons()
    own = {(python.version[:2], python.kind) for python in own_pythons()}
    return [python for python in find_pythons()
            if not python.root or (python.version[:2], python.kind) not in own]


def with_debug_pythons(pythons):
    """PYTHONS and debug builds, even without wants_all(): in their versions up to 3.7 each object begins with
    two more pointers."""
    return pythons + [python for python in debug_pythons() if python not in pythons]


def found_and_debug_pythons():
    return with_debug_pythons(find_pythons())


def own_fetched_and_debug_pythons():
    return with_debug_pythons(own_and_fetched_pythons())


def one_of_each_minor():
    """One Python of each minor version and kind, the most recent and preferably a distribution's; all of
    them if wants_all()."""
    if wants_all():
        return find_pythons()
    chosen = {}
    for python in sorted(find_pythons(), key=lambda python: "pyenv" not in python.name):
        chosen[python.version[:2], python.kind] = python
    return [python for python in find_pythons() if python in chosen.values()]
