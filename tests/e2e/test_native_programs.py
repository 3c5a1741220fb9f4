# SPDX-License-Identifier: BSD-2-Clause
"""The outcomes of native unwinding in real extensions and programs."""

import pytest

from conftest import missing
from native_chains import chain_command, chain_library, check_native_ledger  # noqa: F401
from packages import install
from pythons import RELEASE, find_pythons, musl_pythons, own_pythons

SECONDS = 5
DOWNLOAD_TIMEOUT_S = 600
# The newest packages for each Python version of this table.
PACKAGES = {
    (3, 13): ["numpy==2.5.5", "scipy==1.18.1", "scikit-learn==1.9.1", "pandas==3.1.1", "pillow==13.0.0",
              "lxml==6.1.3", "numba==0.68.1", "llvmlite==0.50.0"],
}
EXTENSIONS = ["blas", "numpy_calls_back", "pybind11", "learn", "frames", "pictures", "xml", "compiled"]
# The share of samples whose native frames may contradict Python's.
CONVICTED = 0.01


@pytest.fixture
def look_at(profile, measured):
    """look_at(NAME, PYTHON, TARGET): adds a row to the report."""
    def look(name, python, program):
        run = profile("-p", program.pid, "-n", "-r", 499, cpu=SECONDS)
        check_native_ledger(run.ledger)
        native = dict(run.ledger["native"])
        whole, resumed = native.pop("whole"), native.pop("resumed")
        others = ", ".join("%s %d" % item for item in native.items() if item[1])
        measured("%s, %s" % (name, python.name), "{:,} samples: {:,} whole, {:,} resumed; others: {}; {} lost".format(
            run.ledger["samples"], whole, resumed, others or "none", run.ledger["lost"]))
        assert native["convicted"] <= CONVICTED * run.ledger["events"]
    return look


@pytest.fixture
def packages(tmp_path):
    """packages(PYTHON): the environment variables with which PYTHON finds its packages."""
    def provide(python):
        folder = install(python, "extensions", PACKAGES[python.version[:2]], str(tmp_path / "new"),
                         timeout=DOWNLOAD_TIMEOUT_S)
        return {"PYTHONPATH": folder}
    return provide


def one_of(pythons, what):
    return next(iter(pythons), None) or missing(what)


def release(*version):
    return [python for python in find_pythons() if python.version[:2] == version and python.kind == RELEASE]


@pytest.mark.prove("native")
@pytest.mark.parametrize("job", EXTENSIONS)
def test_extensions(job, target, look_at, packages):
    python = one_of([python for python in own_pythons() if python.version[:2] in PACKAGES], "Python for the packages")
    look_at(job, python, target(python, "extensions.py", job, environment=packages(python)))


# name: (program and its arguments, version of Python, environment).
PROGRAMS = {
    "OpenSSL": (["extensions.py", "openssl"], (3, 11), {}),
    "sub-interpreters": (["interpreters.py", "thread", "0", "private"], (3, 13), {}),
    "greenlets": (["greenlets.py", "greenlet"], (3, 11), {}),
    "JIT, 3.14": (["jitted.py"], (3, 14), {"PYTHON_JIT": "1"}),
    "JIT, 3.15": (["jitted.py"], (3, 15), {"PYTHON_JIT": "1"}),
}


@pytest.mark.prove("native")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, target, look_at):
    command, version, environment = PROGRAMS[name]
    python = one_of(release(*version), "Python %d.%d" % version)
    look_at(name, python, target(python, *command, environment=environment))


@pytest.mark.prove("native")
def test_musl(target, look_at):
    python = one_of(musl_pythons(), "Python with musl")
    look_at("musl", python, target(python, "extensions.py", "standard"))


@pytest.mark.prove("native")
def test_a_library_loaded_by_dlopen(target, look_at, chain_command):
    python = own_pythons()[-1]
    program = target(python, *chain_command("late"))
    program.go()
    look_at("dlopen", python, program)
