#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fetches the interpreters of other Debian suites, for the tests.

    sudo tests/interpreters/debian.py [SUITE...]

Everything goes to $PYBPFPROF_TEST_CACHE, /var/cache/pybpfprof-tests by default, and stays there
until it is removed by hand:

    pythons/SUITE/                               the suite's /usr and /etc: its interpreters,
                                                 libpythons, all dependencies, their debug
                                                 builds, and programs that embed one
    headers/SUITE/usr/include/python3.N/         their headers, for x86-64 and for aarch64
    aarch64/SUITE/usr/include/                   the C library's headers for aarch64

apt-get resolves and verifies the packages, from the mirror in this machine's own sources.  It has
separate lists, state and archives, so the machine's packages do not change.
"""

import collections
import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

SUITES = {
    "bullseye": ("2.7", "3.9"),
    "bookworm": ("3.11",),
    "trixie": ("3.13",),
    "sid": ("3.14", "3.15"),
}
# Programs that embed an interpreter.
EMBEDDING = {"bookworm": ("uwsgi-core", "uwsgi-plugin-python3")}
CACHE = os.environ.get("PYBPFPROF_TEST_CACHE", "/var/cache/pybpfprof-tests")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
CROSS_ARCHITECTURE = "arm64"
DEBUG_PROGRAM = "python%s-dbg"
# Debugging information, and libraries to link with.
NOT_OF_DEBUG_BUILDS = ("./usr/lib/debug", "libpython*")
C_LIBRARY_HEADERS = ("libc6-dev", "libcrypt-dev", "linux-libc-dev")
ENTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "enter.sh")
FETCH_TIMEOUT_S = 600

# The system's settings apply, such as a proxy, but not its lists, hooks and packages.
CONFIGURATION = """
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Default-Release "";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
APT::Install-Recommends "false";
Acquire::Retries "3";
Acquire::Check-Valid-Until "false";
Acquire::http::Timeout "30";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Architecture "{architecture}";
#clear APT::Architectures;
APT::Architectures {{ "{architecture}"; }};
"""

# outcome: "there", "unreachable" or "failed"; reason: why it is missing.
Outcome = collections.namedtuple("Outcome", "name outcome reason")

# An Apt for this machine's architecture, and one for CROSS_ARCHITECTURE.
Apts = collections.namedtuple("Apts", "native cross")


class Unreachable(Exception):
    """The mirror cannot be reached, or does not have the suite."""


class Failure(Exception):
    """The mirror was reached, but something failed."""


def say(text):
    print("interpreters: " + text, flush=True)


def run(command, error, stdin=subprocess.DEVNULL, timeout=FETCH_TIMEOUT_S, **options):
    """The output of a command.  Raises ERROR, a class, if it fails."""
    try:
        ended = subprocess.run(command, stdin=stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, universal_newlines=True,
                               timeout=timeout, **options)
    except (OSError, subprocess.TimeoutExpired) as reason:
        raise error(str(reason)) from None
    if ended.returncode != 0:
        lines = ended.stdout.splitlines()
        errors = [line for line in lines if line.startswith("E:")]
        raise error((errors or lines[-1:] or ["%s failed" % command[0]])[0])
    return ended.stdout


def find_mirror():
    """The mirror of this machine's own packages of Debian's main."""
    codename = ""
    with open("/etc/os-release", encoding="utf-8") as release:
        for line in release:
            if line.startswith("VERSION_CODENAME="):
                codename = line.partition("=")[2].strip().strip('"')
    wanted = "$(RELEASE) $(COMPONENT) $(REPO_URI)"
    for line in run(["apt-get", "indextargets", "--format", wanted], Unreachable).splitlines():
        release, component, uri = line.split(" ", 2)
        if (release, component) == (codename, "main"):
            return uri
    raise Unreachable("this machine's sources name no mirror of Debian's main")


def native_architecture():
    return run(["dpkg", "--print-architecture"], Unreachable).strip()


class Apt:
    """apt-get for another suite, or for its SOURCES, for ARCHITECTURE, with all its files in
    FOLDER."""

    def __init__(self, suite, folder, architecture, sources=False):
        self.folder = folder
        self.configuration = os.path.join(folder, "apt.conf")
        for name in "state/lists/partial", "cache/archives/partial":
            os.makedirs(os.path.join(folder, name))
        self.write("status", "")
        self.write("apt.conf", CONFIGURATION.format(folder=folder, architecture=architecture))
        kind, index = ("deb-src", "Sources") if sources else ("deb", "Packages")
        options = ["target=" + index, "lang=none"]
        if os.path.exists(KEYRING):
            options.append("signed-by=" + KEYRING)
        self.write("sources.list", "%s [%s] %s %s main\n"
                   % (kind, " ".join(options), find_mirror(), suite))
        self("update", error=Unreachable)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def __call__(self, *arguments, error=Failure, **options):
        run(["apt-get", "-c", self.configuration, "-q", "-y", *arguments], error, **options)

    def closure(self, packages):
        """Archives of the packages and of all that they depend on."""
        self("install", "--download-only", *packages)
        return glob.glob(os.path.join(self.folder, "cache", "archives", "*.deb"))

    def alone(self, packages):
        """Archives of just these packages."""
        folder = tempfile.mkdtemp(dir=self.folder)
        self("download", *packages, cwd=folder)
        return glob.glob(os.path.join(folder, "*.deb"))

    def source(self, package):
        """The original archives of a source package."""
        folder = tempfile.mkdtemp(dir=self.folder)
        self("source", "--download-only", "--only-source", package, cwd=folder)
        return glob.glob(os.path.join(folder, "*.orig.tar.xz"))


def make_root(root):
    """Makes a root folder, in which /lib and similar folders are links into /usr."""
    for name in "bin", "sbin", "lib", "lib64":
        os.makedirs(os.path.join(root, "usr", name))
        os.symlink("usr/" + name, os.path.join(root, name))
    os.makedirs(os.path.join(root, "etc"))


def unpack(archives, root, without=()):
    """Unpacks archives into ROOT, except what the patterns WITHOUT match."""
    for archive in archives:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive],
                              stdout=subprocess.PIPE) as reader:
            run(["tar", "-x", "-C", root, "--keep-directory-symlink",
                 *("--exclude=" + pattern for pattern in without)], Failure, stdin=reader.stdout)
        if reader.returncode != 0:
            raise Failure("%s cannot be unpacked" % os.path.basename(archive))


def packages_of(suite):
    packages = [name + version for version in SUITES[suite] for name in ("python", "libpython")]
    return packages + list(EMBEDDING.get(suite, ()))


def debug_packages_of(suite):
    return [name % version for version in SUITES[suite]
            for name in ("python%s-dbg", "libpython%s-dbg")]


def fetch_pythons(suite, apts, root):
    make_root(root)
    unpack(apts.native.closure(packages_of(suite)), root)
    # The release's packages contain what a debug build needs.
    unpack(apts.native.alone(debug_packages_of(suite)), root, NOT_OF_DEBUG_BUILDS)
    for version in SUITES[suite]:
        for program in "python" + version, DEBUG_PROGRAM % version:
            run([ENTER, root, "/usr/bin/" + program, "-c", "import ctypes, hashlib, zlib"], Failure)


def fetch_headers(suite, apts, root):
    """Fetches headers for both architectures, which share all files except pyconfig.h."""
    packages = ["libpython%s-dev" % version for version in SUITES[suite]]
    make_root(root)
    unpack(apts.native.alone(packages) + apts.cross.alone(packages), root)
    shutil.rmtree(os.path.join(root, "usr", "lib"))


def fetch_c_library_headers(_suite, apts, root):
    """Since trixie, the kernel's headers are links into usr/lib/linux."""
    make_root(root)
    unpack(apts.cross.alone(C_LIBRARY_HEADERS), root)
    for folder in glob.glob(os.path.join(root, "usr", "lib", "*-linux-gnu")):
        shutil.rmtree(folder)


CONTENTS = {
    "pythons": fetch_pythons,
    "headers": fetch_headers,
    "aarch64": fetch_c_library_headers,
}

# The recipe of a folder.  A folder with another recipe is made again.
RECIPES = {"pythons": " with debug builds", "headers": " for both architectures", "aarch64": ""}


def recipe(what, suite):
    embedding = EMBEDDING.get(suite, ()) if what == "pythons" else ()
    return " ".join(SUITES[suite]) + RECIPES[what] + "".join(" " + name for name in embedding)


def has_recipe(root, recipe):
    """Whether ROOT was made with this recipe."""
    try:
        with open(os.path.join(root, "recipe"), encoding="utf-8") as file:
            return file.read() == recipe
    except OSError:
        return False


def is_cached(what, suite):
    return has_recipe(os.path.join(CACHE, what, suite), recipe(what, suite))


def write_recipe(root, recipe):
    with open(os.path.join(root, "recipe"), "w", encoding="utf-8") as file:
        file.write(recipe)


def move_into_place(root, place, folder):
    """Moves ROOT to PLACE.  The old PLACE goes to FOLDER, which the caller removes."""
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.exists(place):
        os.rename(place, tempfile.mkdtemp(dir=folder))
    os.rename(root, place)


def is_there(suite):
    """Whether all of a suite is cached, in the versions that are wanted now."""
    return all(is_cached(what, suite) for what in CONTENTS)


def fetch_root(suite, architecture, program, packages, place):
    """Makes PLACE a root folder of a suite's PACKAGES for an architecture, which have
    usr/bin/PROGRAM."""
    started = time.monotonic()
    say("%s for %s: fetching %s" % (suite, architecture, program))
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=CACHE) as folder:
        apt = Apt(suite, tempfile.mkdtemp(dir=folder), architecture)
        root = os.path.join(folder, "root")
        make_root(root)
        unpack(apt.closure(packages), root)
        if not os.path.exists(os.path.join(root, "usr", "bin", program)):
            raise Failure("its packages have no " + program)
        write_recipe(root, " ".join(packages))
        move_into_place(root, place, folder)
    say("%s for %s: there, after %.0f s" % (suite, architecture, time.monotonic() - started))


def fetch_suite(suite):
    started = time.monotonic()
    say("%s: fetching Python %s" % (suite, " and ".join(SUITES[suite])))
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=CACHE) as folder:
        apts = Apts(*(Apt(suite, tempfile.mkdtemp(dir=folder), architecture)
                      for architecture in (native_architecture(), CROSS_ARCHITECTURE)))
        wanted = [what for what in CONTENTS if not is_cached(what, suite)]
        for what in wanted:
            root = os.path.join(folder, what)
            CONTENTS[what](suite, apts, root)
            write_recipe(root, recipe(what, suite))
        for what in wanted:
            move_into_place(os.path.join(folder, what), os.path.join(CACHE, what, suite), folder)
    say("%s: there, after %.0f s" % (suite, time.monotonic() - started))


@contextlib.contextmanager
def only_one():
    """One process at a time fetches.  A second one waits, and then finds everything present."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in glob.glob(os.path.join(CACHE, "fetching-*")):
            shutil.rmtree(left)
        yield


def provide(name, is_there, make):
    """Calls MAKE unless NAME is present.  Returns its Outcome."""
    try:
        if not is_there(name):
            with only_one():
                if not is_there(name):
                    make(name)
        return Outcome(name, "there", "")
    except Unreachable as reason:
        return Outcome(name, "unreachable", str(reason))
    except (Failure, OSError) as reason:
        return Outcome(name, "failed", str(reason))


def fetch(suites=tuple(SUITES)):
    """Fetches the missing suites.  Returns an Outcome for each."""
    return [provide(suite, is_there, fetch_suite) for suite in suites]


def find_interpreters():
    """(suite, path of its root, version) of every interpreter in the cache."""
    return [(suite, os.path.join(CACHE, "pythons", suite), version)
            for suite in SUITES if is_there(suite) for version in SUITES[suite]]


def headers_of(suite):
    """The root folder of the headers of a suite's interpreters."""
    return os.path.join(CACHE, "headers", suite)


def find_c_library_headers():
    """{suite: root} of the C library's headers for aarch64 in the cache."""
    return {suite: os.path.join(CACHE, "aarch64", suite)
            for suite in SUITES if is_cached("aarch64", suite)}


def run_as_program(known, provide_all, usage):
    """Provides the items of KNOWN that the arguments name; without arguments, all.  Returns the
    exit status: 1 if some could not be reached, 2 if anything else failed."""
    if set(sys.argv[1:]) - set(known):
        return usage.strip()
    results = provide_all(sys.argv[1:] or known)
    for result in results:
        say(" ".join(filter(None, result)))
    outcomes = {result.outcome for result in results}
    return 2 if "failed" in outcomes else int("unreachable" in outcomes)


if __name__ == "__main__":
    sys.exit(run_as_program(SUITES, fetch, __doc__))
