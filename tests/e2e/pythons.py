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

# path: of the executable, as its own processes see it; version: (3, 8, 18); name: "3.8.18-pyenv",
# for test ids; include: the folder of its Python.h, which need not exist; command: what starts it;
# root: "", or the folder whose /usr it has in place of this machine's; kind: RELEASE or another.
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
    """Where pyenv keeps its interpreters; the home of the user who called sudo counts."""
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
    """Whether tests run on every interpreter, built ones and debug builds included."""
    return TIER == "interpreters" or os.environ.get("PYBPFPROF_TEST_ALL") == "1"


def wants_each_version():
    return TIER in ("truth", "lines", "native", "events", "waiting") or wants_all()


def few_of(pythons):
    """One of each version of FEW, the machine's own where it has one; the newest where none is there."""
    found = []
    for versions in FEW:
        alike = [python for version in versions for python in pythons
                 if python.version[:2] == version and python.kind == RELEASE]
        found += sorted(alike, key=lambda python: bool(python.root))[:1]
    return found or pythons[-1:]


def describe(path, origin, root="", jit=False):
    """The Python at PATH, with its JIT on or off; None where it does not start or is not ours."""
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
    """What no package has, debug builds, and Debian's with the JIT, which is off unless asked for."""
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
    # The system may be one of Debian's suites itself.
    of_system = {python.version for python in found if python and python.name.endswith("-system")}
    found += [python for suite, root, version in debian.find_interpreters()
              for python in [describe("/usr/bin/python" + version, suite, root)]
              if python and python.version not in of_system]
    found += find_uncommon() if wants_all() else []
    return sorted(filter(None, found), key=lambda python: (python.version, python.name))


def musl_pythons():
    """With musl in the place of the GNU C library, and few modules; of one that was built."""
    return [describe(path, kind) for kind, path in build.find_interpreters() if kind == "musl"]


def own_pythons():
    """Those that this machine has of its own."""
    return [python for python in find_pythons() if not python.root and python.kind == RELEASE]


def own_and_fetched_pythons():
    """Its own, and of the versions and kinds that it does not have those that were fetched; all
    where all are wanted."""
    if wants_all():
        return find_pythons()
    own = {(python.version[:2], python.kind) for python in own_pythons()}
    return [python for python in find_pythons()
            if not python.root or (python.version[:2], python.kind) not in own]


def with_debug_pythons(pythons):
    """PYTHONS, and debug builds whether or not all uncommon ones are wanted: up to 3.7 each object
    begins with two pointers more there."""
    return pythons + [python for python in debug_pythons() if python not in pythons]


def found_and_debug_pythons():
    return with_debug_pythons(find_pythons())


def own_fetched_and_debug_pythons():
    return with_debug_pythons(own_and_fetched_pythons())


def one_of_each_minor():
    """Of every minor version and kind one, the most recent and preferably a distribution's; all
    where all are wanted."""
    if wants_all():
        return find_pythons()
    chosen = {}
    for python in sorted(find_pythons(), key=lambda python: "pyenv" not in python.name):
        chosen[python.version[:2], python.kind] = python
    return [python for python in find_pythons() if python in chosen.values()]
