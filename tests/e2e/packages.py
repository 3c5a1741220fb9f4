# SPDX-License-Identifier: BSD-2-Clause
"""Python packages, installed with pip into a folder that later runs reuse."""

import os
import shutil
import subprocess

import pytest

from conftest import missing
from pythons import own_pythons

INSTALL_TIMEOUT_S = 60


def has_module(command, module):
    return subprocess.run([*command, "-c", "import " + module], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def pip_for(python):
    """The Python whose pip installs for PYTHON, and pip's options.  Fetched Pythons have no pip: the newest
    Python here that has one installs for them."""
    if not python.root:
        return python.path, []
    pips = [own.path for own in own_pythons() if has_module(own.command, "pip")]
    if not pips:
        missing("pip, to fetch packages for %s" % python.name)
    # In order of preference.
    platforms = ["%s_%s" % (tag, os.uname().machine) for tag in ("manylinux_2_28", "manylinux2014")]
    return pips[-1], ["--python-version", "%d.%d" % python.version[:2],
                      *("--platform=" + platform for platform in [*platforms, "any"])]


def install(python, name, requirements, new, timeout=INSTALL_TIMEOUT_S, finish=lambda folder: None):
    """The folder with REQUIREMENTS, cached under NAME.  If it is missing, they are installed in NEW, FINISH(NEW)
    is called, and NEW becomes that folder.  Skips the test if the index lacks them."""
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    folder = os.path.join(cache, "pybpfprof-tests", "%s-%s" % (name, python.name))
    if os.path.isdir(folder):
        return folder
    installer, options = pip_for(python)
    command = [installer, "-m", "pip", "-q", "--disable-pip-version-check", "install", *options,
               "--only-binary", ":all:", "--target", new, *requirements]
    try:
        made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    except subprocess.TimeoutExpired:
        pytest.skip("no %s for %s: the package index does not answer" % (name, python.name))
    said = made.stdout.decode()
    if "from versions: none" in said or "No matching distribution" in said:
        pytest.skip("no %s for %s in the package index that pip reaches" % (name, python.name))
    if made.returncode:
        missing("%s for %s: %s" % (name, python.name, said[-200:]))
    finish(new)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    shutil.move(new, folder)
    return folder
