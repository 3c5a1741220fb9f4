# SPDX-License-Identifier: BSD-2-Clause
"""The CPython interpreters of this machine that the tests run on."""

import collections
import functools
import glob
import os
import pwd
import re
import subprocess

OLDEST = (3, 7)
NEWEST = (3, 15)

# path: of the executable; version: (3, 8, 18); name: "3.8.18-pyenv", for test ids;
# include: the folder of its Python.h, which need not exist.
Python = collections.namedtuple("Python", "path version name include")

ASK = """
import sys, sysconfig
print("%d.%d.%d" % sys.version_info[:3])
print(sysconfig.get_path("include"))
print(sysconfig.get_config_var("Py_GIL_DISABLED") or 0)
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


def describe(path, origin):
    """The Python at PATH, or None where it is not one of ours or does not start."""
    answer = subprocess.run([path, "-I", "-c", ASK], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, universal_newlines=True)
    if answer.returncode != 0:
        return None
    version_text, include, free_threaded = answer.stdout.splitlines()
    version = tuple(map(int, version_text.split(".")))
    if not OLDEST <= version[:2] <= NEWEST or free_threaded == "1":
        return None
    return Python(path, version, "%s-%s" % (version_text, origin), include)


@functools.lru_cache(maxsize=None)
def find_pythons():
    """Every supported Python found, oldest first."""
    places = [("pyenv", os.path.join(pyenv_root(), "versions", "*", "bin", "python3.*")),
              ("system", "/usr/bin/python3.*")]
    found = [describe(path, origin)
             for origin, pattern in places
             for path in glob.glob(pattern)
             if re.search(r"/python3\.\d+$", path)]
    return sorted(filter(None, found), key=lambda python: (python.version, python.name))
