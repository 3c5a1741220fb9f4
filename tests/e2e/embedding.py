# SPDX-License-Identifier: BSD-2-Clause
"""Programs that embed Python: what they are built from, and how they are profiled."""

import collections
import glob
import os
import shutil
import subprocess
import sys

import pytest

from conftest import PROGRAMS, missing, wait_used
from legal import runs_until
from pythons import DEBUG, JIT, RELEASE, debian, find_pythons, own_pythons

NOT_PYTHON = 3
BUSY = os.path.join(PROGRAMS, "busy.py")
SPIN = "import threading\ndef spin():\n while True: sum(range(1000))\nspin()"

ASK = """
import sysconfig
for name in ("INCLUDEPY", "LIBDIR", "LIBPL", "LDLIBRARY", "LIBRARY", "LDVERSION", "LIBS", "SYSLIBS",
             "MODLIBS", "prefix"):
    print(sysconfig.get_config_var(name) or "")
"""

# Parts for embedding a Python: the folder of Python.h; the paths of the shared library, of the static one
# and of the position-independent static one ("" if missing); the linker flags that they need; PYTHONHOME.
Parts = collections.namedtuple("Parts", "include shared static pic libraries home")


def find_parts(python):
    answer = subprocess.run([python.path, "-c", ASK], stdout=subprocess.PIPE, check=True,
                            universal_newlines=True).stdout.splitlines()
    include, folder, static_folder, shared, static, version, *libraries, home = answer
    candidates = [os.path.join(place, name)
                  for place in (folder, static_folder)
                  for name in (shared, "libpython%s.so.1.0" % version)
                  if ".so" in name]
    shared = next(filter(os.path.exists, candidates), "")
    static = os.path.join(static_folder, static)
    static = static if os.path.exists(static) else ""
    # Debian has both archives.  Other builds with a shared library have one, which is position-independent.
    pic = os.path.join(static_folder, "libpython%s-pic.a" % version)
    if not os.path.exists(pic):
        pic = static if shared.startswith(home) and home != "/usr" else ""
    return Parts(include, shared and os.path.realpath(shared), static, pic,
                 " ".join(libraries).split(), home)


def find_fetched_parts(python):
    """The parts of an interpreter that has its own root, with paths on this machine."""
    name = "libpython%d.%d.so.1.0" % python.version[:2]
    shared = next(iter(glob.glob(os.path.join(python.root, "usr", "lib", "*", name))), "")
    return Parts(python.include, shared, "", "", [], os.path.join(python.root, "usr"))


def is_embeddable(parts):
    return os.path.exists(os.path.join(parts.include, "Python.h")) and parts.shared


def loads_here(parts):
    """Whether this machine's libc is new enough for the libpython."""
    return subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])",
                           parts.shared], stderr=subprocess.DEVNULL).returncode == 0


def fetched_pythons():
    return [python for python in find_pythons() if python.root and python.kind == RELEASE]


def pythons_with_libraries():
    """All but debug builds, whose libraries are not fetched."""
    return [python for python in find_pythons() if python.kind != DEBUG]


def parts_of(python):
    return find_fetched_parts(python) if python.root else find_parts(python)


def put_alone(parts, folder):
    """PARTS with the libpython linked into FOLDER, so that programs here do not load other libraries beside it."""
    path = os.path.join(str(folder), os.path.basename(parts.shared))
    os.symlink(parts.shared, path)
    return parts._replace(shared=path)


@pytest.fixture(scope="session")
def embeddable(tmp_path_factory):
    """[(Python, Parts), ...] of the Pythons that can be embedded, oldest first: this machine's own, and
    fetched ones of the other versions."""
    every = [(python, find_parts(python)) for python in own_pythons()]
    every = [pair for pair in every if is_embeddable(pair[1])]
    own = {python.version[:2] for python, _ in every}
    fetched = [(python, find_fetched_parts(python)) for python in fetched_pythons()
               if python.version[:2] not in own]
    every += [(python, put_alone(parts, tmp_path_factory.mktemp("libpython")))
              for python, parts in fetched if is_embeddable(parts) and loads_here(parts)]
    return sorted(every, key=lambda pair: pair[0].version) or missing("libpython with Python.h")


@pytest.fixture(scope="session")
def newest(embeddable):
    """The newest embeddable Python of this machine's own, and its Parts."""
    own = [pair for pair in embeddable if not pair[0].root]
    return own[-1] if own else missing("libpython with Python.h of this machine's own")


@pytest.fixture
def static_python():
    """Debian's Python, a single stripped file without a shared libpython."""
    python = next((python for python in own_pythons() if python.path.startswith("/usr/bin/")), None)
    if not python or "libpython" in dependencies(python.path):
        missing("static Python in /usr/bin")
    return python


@pytest.fixture
def shared_python(newest, build):
    """A Python whose executable is a small launcher of libpython, unlike Debian's, and its Parts."""
    python, parts = newest
    if "libpython" in dependencies(python.path):
        return newest
    launcher = build("launcher.c", *link_shared(parts))
    return python._replace(path=launcher, command=(launcher,)), parts


def dependencies(path):
    return subprocess.run(["ldd", path], stdout=subprocess.PIPE, universal_newlines=True).stdout


@pytest.fixture
def build(require, tmp_path):
    """build(SOURCE, ARGUMENT...): the path of the program or library."""
    def compile_source(source, *arguments):
        output = str(tmp_path / ("built-%d" % len(os.listdir(str(tmp_path)))))
        subprocess.run([require("gcc"), "-O1", "-o", output, os.path.join(PROGRAMS, source),
                        *arguments, "-pthread", "-ldl"], check=True)
        return output
    return compile_source


def include(parts):
    # Debian's pyconfig.h includes one in a sibling folder.
    return ["-I" + parts.include, "-I" + os.path.dirname(parts.include)]


def link_shared(parts):
    folder, name = os.path.split(parts.shared)
    # A fetched library may find its own dependencies only in its root.
    return [*include(parts), "-L" + folder, "-l:" + name, "-Wl,-rpath," + folder,
            "-Wl,--allow-shlib-undefined"]


def link_static(parts, library):
    return [*include(parts), library, *parts.libraries, "-lm", "-lutil"]


def link_static_for_modules(parts):
    """Links and exports all of libpython, which extension modules need from the program."""
    library = "-Wl,--whole-archive,%s,--no-whole-archive" % parts.static
    return ["-no-pie", "-rdynamic", *link_static(parts, library)]


@pytest.fixture
def unnamed(embeddable):
    """A Python before 3.10, for which a stripped program has neither symbol nor section, and its Parts."""
    found = [pair for pair in embeddable if (3,) <= pair[0].version < (3, 10) and pair[1].static]
    return found[-1] if found else missing("libpython.a before 3.10")


@pytest.fixture
def home(tmp_path_factory):
    """home(PYTHON, PARTS): the PYTHONHOME of a program that exports nothing to modules."""
    def find(python, parts):
        if python.version >= (3,):
            return parts.home
        # At its start 2.7 imports modules that need the shared library.  Empty ones avoid that.
        folder = tmp_path_factory.mktemp("home")
        library = folder / "lib" / "python2.7"
        library.mkdir(parents=True)
        for name in "os.py", "site.py":
            (library / name).write_text("")
        return str(folder)
    return find


@pytest.fixture
def embed(build, target, tmp_path_factory):
    """embed(PYTHON, HOW, SCRIPT, SOURCE): a Target, a program that embeds the Python with its "shared" or
    "static" library; None if there is no such library."""
    def start(python, how, script, source="embed.c"):
        parts, prefix = parts_of(python), ()
        environment = {"PYTHON_JIT": "1"} if python.kind == JIT else {}
        if not getattr(parts, how):
            return None
        if python.root and loads_here(parts):
            parts = put_alone(parts, tmp_path_factory.mktemp("libpython"))
        elif python.root:
            prefix = debian.ENTER, python.root
        if not prefix:
            environment["PYTHONHOME"] = parts.home
        link = link_shared if how == "shared" else link_static_for_modules
        return target.start([*prefix, build(source, *link(parts)), script], environment=environment)
    return start


@pytest.fixture
def host(build, target):
    """host(STEP...): a program that loads Pythons; see host.c."""
    path = []

    def start(*steps, **options):
        if not path:
            path.append(build("host.c"))
        program = options.pop("path", path[0])
        return target.start([*options.pop("prefix", ()), program, *steps], **options)
    return start


def load(parts):
    return "load=" + parts.shared, "home=" + parts.home


@pytest.fixture
def profile_some(profile):
    """profile_some(TARGET, ARGUMENT...): a Run with samples, however busy the machine is."""
    def run(program, *arguments, **options):
        # The program may print "ready" before its script runs.
        wait_used(0.1, program.pid)
        return runs_until(profile, lambda runs: runs[-1].ledger["python"],
                          "-p", program.pid, "-r", 499, *arguments, cpu=0.2, **options)[-1]
    return run


@pytest.fixture
def expect_whole(profile_some):
    """expect_whole(TARGET): profiles it; every stack must be whole, with spin in it."""
    def check(program, **options):
        run = profile_some(program, **options)
        assert run.count_name("spin") == run.ledger["python"]
        assert run.ledger["truncated"] == run.ledger["no_python"] == 0
        # No warning contradicts the profile.
        assert "more than one" not in run.stderr and "not started" not in run.stderr
    return check


def expect_refusal(run, *words):
    """The profiler failed with a one-line message that contains WORDS."""
    assert run.status == NOT_PYTHON, run.stderr
    assert len(run.stderr.splitlines()) == 1, run.stderr
    for word in words:
        assert word in run.stderr


def copy(path, to):
    shutil.copyfile(path, str(to))
    os.chmod(str(to), 0o755)
    return str(to)
