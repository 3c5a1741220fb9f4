# SPDX-License-Identifier: BSD-2-Clause
"""Where a process's Python is found: by what is mapped, never by a name.

Each test starts busy.py in some way, or loads a Python into a program that is
none, and expects every sample to have its whole stack.
"""

import collections
import fcntl
import glob
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest

from conftest import PROGRAMS, missing, wait_used, whole_at_least
from legal import DeepLegal
from pythons import DEBUG, JIT, RELEASE, debian, find_pythons, own_pythons

NOT_PYTHON = 3
BUSY = os.path.join(PROGRAMS, "busy.py")
REPLACED, REPLACED_S = os.path.join(PROGRAMS, "replaced.py"), 1
SPIN = "import threading\ndef spin():\n while True: sum(range(1000))\nspin()"

ASK = """
import sysconfig
for name in ("INCLUDEPY", "LIBDIR", "LIBPL", "LDLIBRARY", "LIBRARY", "LDVERSION", "LIBS", "SYSLIBS",
             "MODLIBS", "prefix"):
    print(sysconfig.get_config_var(name) or "")
"""

# What is needed to embed a Python: the folder of Python.h, the paths of both libraries ("" where
# there is none), that of the static one as position-independent code, what these need beside them,
# and PYTHONHOME.
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
    # Debian has both; what else was built with a shared library has only this.
    pic = os.path.join(static_folder, "libpython%s-pic.a" % version)
    if not os.path.exists(pic):
        pic = static if shared.startswith(home) and home != "/usr" else ""
    return Parts(include, shared and os.path.realpath(shared), static, pic,
                 " ".join(libraries).split(), home)


def find_fetched_parts(python):
    """The same of an interpreter that has a root of its own, as seen from here."""
    name = "libpython%d.%d.so.1.0" % python.version[:2]
    shared = next(iter(glob.glob(os.path.join(python.root, "usr", "lib", "*", name))), "")
    return Parts(python.include, shared, "", "", [], os.path.join(python.root, "usr"))


def is_embeddable(parts):
    return os.path.exists(os.path.join(parts.include, "Python.h")) and parts.shared


def loads_here(parts):
    """Whether this machine's libc is not too old for the libpython."""
    return subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])",
                           parts.shared], stderr=subprocess.DEVNULL).returncode == 0


def fetched_pythons():
    return [python for python in find_pythons() if python.root and python.kind == RELEASE]


def pythons_with_libraries():
    """Of debug builds, only the programs are fetched."""
    return [python for python in find_pythons() if python.kind != DEBUG]


def parts_of(python):
    return find_fetched_parts(python) if python.root else find_parts(python)


def put_alone(parts, folder):
    """Parts whose libpython has no other library beside it that a program of this machine would take."""
    path = os.path.join(str(folder), os.path.basename(parts.shared))
    os.symlink(parts.shared, path)
    return parts._replace(shared=path)


@pytest.fixture(scope="session")
def embeddable(tmp_path_factory):
    """[(Python, Parts), ...] of those that can be embedded, oldest first: this machine's own, and of
    the versions that it does not have those that were fetched."""
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
    """The newest of this machine's own."""
    own = [pair for pair in embeddable if not pair[0].root]
    return own[-1] if own else missing("libpython with Python.h of this machine's own")


@pytest.fixture
def static_python():
    """A Python that is one file, stripped: Debian's."""
    python = next((python for python in own_pythons() if python.path.startswith("/usr/bin/")), None)
    if not python or "libpython" in dependencies(python.path):
        missing("static Python in /usr/bin")
    return python


@pytest.fixture
def shared_python(newest, build):
    """A Python whose executable has nearly nothing, as Debian's has not, and its Parts."""
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
    # Debian's pyconfig.h refers to one in a folder beside this one.
    return ["-I" + parts.include, "-I" + os.path.dirname(parts.include)]


def link_shared(parts):
    folder, name = os.path.split(parts.shared)
    # What a fetched one needs, it may find only in its root.
    return [*include(parts), "-L" + folder, "-l:" + name, "-Wl,-rpath," + folder,
            "-Wl,--allow-shlib-undefined"]


def link_static(parts, library):
    return [*include(parts), library, *parts.libraries, "-lm", "-lutil"]


def link_static_for_modules(parts):
    """With all that modules of the Python's library may need of the program."""
    library = "-Wl,--whole-archive,%s,--no-whole-archive" % parts.static
    return ["-no-pie", "-rdynamic", *link_static(parts, library)]


@pytest.fixture
def profile_some(profile):
    """profile_some(TARGET, ARGUMENT...): a Run with samples, however busy the machine is."""
    def run(program, *arguments, **options):
        # It may be ready before what it is to run has begun.
        wait_used(0.1, program.pid)
        for _ in range(10):
            run = profile("-p", program.pid, "-d", 0.5, "-r", 499, *arguments, **options)
            if run.ledger["python"]:
                break
        assert run.ledger["python"] > 0, run.stderr
        return run
    return run


@pytest.fixture
def expect_whole(profile_some):
    """expect_whole(TARGET): profiles it; every sample must have a whole stack, with spin in it."""
    def check(program, **options):
        run = profile_some(program, **options)
        assert run.count_name("spin") == run.ledger["python"] == run.samples
        assert run.ledger["truncated"] == 0
        # Nothing is said but what the profile shows.
        assert "more than one" not in run.stderr and "not started" not in run.stderr
    return check


def expect_refusal(run, *words):
    """One line, which says what is wrong."""
    assert run.status == NOT_PYTHON, run.stderr
    assert len(run.stderr.splitlines()) == 1, run.stderr
    for word in words:
        assert word in run.stderr


def copy(path, to):
    shutil.copyfile(path, str(to))
    os.chmod(str(to), 0o755)
    return str(to)


def strip_sections(path):
    """Takes the section headers away, and what no segment has, as sstrip does."""
    with open(path, "r+b") as image:
        header = bytearray(image.read(64))
        phoff, = struct.unpack_from("<Q", header, 32)
        phnum, = struct.unpack_from("<H", header, 56)
        image.seek(phoff)
        segments = [struct.unpack("<IIQQQQQQ", image.read(56)) for _ in range(phnum)]
        struct.pack_into("<Q", header, 40, 0)
        struct.pack_into("<HHH", header, 58, 0, 0, 0)
        image.seek(0)
        image.write(header)
        image.truncate(max(offset + size for _, _, offset, _, _, size, _, _ in segments))
    return path


class TestExecutables:
    def test_renamed(self, static_python, target, expect_whole, tmp_path):
        expect_whole(target.start([copy(static_python.path, tmp_path / "worker"), BUSY]))

    def test_symbolic_link(self, static_python, target, expect_whole, tmp_path):
        os.symlink(static_python.path, str(tmp_path / "worker"))
        expect_whole(target.start([str(tmp_path / "worker"), BUSY]))

    def test_hard_link(self, static_python, target, expect_whole, tmp_path):
        os.link(copy(static_python.path, tmp_path / "first"), str(tmp_path / "worker"))
        expect_whole(target.start([str(tmp_path / "worker"), BUSY]))

    def test_script(self, static_python, target, expect_whole, tmp_path):
        script = tmp_path / "worker"
        with open(BUSY, encoding="utf-8") as busy:
            script.write_text("#!%s\n%s" % (static_python.path, busy.read()))
        script.chmod(0o755)
        expect_whole(target.start([str(script)]))

    def test_other_comm(self, static_python, target, expect_whole):
        program = "import ctypes; ctypes.CDLL(None).prctl(15, b'nginx: worker')\nexec(open(%r).read())"
        started = target.start([static_python.path, "-c", program % BUSY])
        with open("/proc/%d/comm" % started.pid, encoding="ascii") as comm:
            assert comm.read() == "nginx: worker\n"
        expect_whole(started)

    def test_through_the_loader(self, static_python, target, expect_whole):
        loader = re.search(r"(/\S*/ld-linux\S*)", dependencies(static_python.path))
        if not loader:
            missing("ld-linux.so")
        started = target.start([loader.group(1), static_python.path, BUSY])
        assert "ld-linux" in os.readlink("/proc/%d/exe" % started.pid)
        expect_whole(started)

    def test_stripped_libpython(self, shared_python, target, expect_whole, require, tmp_path):
        python, parts = shared_python
        library = copy(parts.shared, tmp_path / os.path.basename(parts.shared))
        subprocess.run([require("strip"), library], check=True)
        expect_whole(target(python, BUSY, environment={"LD_PRELOAD": library}))

    def test_no_sections(self, static_python, target, expect_whole, tmp_path):
        path = strip_sections(copy(static_python.path, tmp_path / "worker"))
        expect_whole(target.start([path, BUSY]))

    def test_libpython_without_sections(self, shared_python, target, expect_whole, tmp_path):
        python, parts = shared_python
        library = strip_sections(copy(parts.shared, tmp_path / os.path.basename(parts.shared)))
        expect_whole(target(python, BUSY, environment={"LD_PRELOAD": library}))

    def test_unusual_prefix(self, shared_python, target, expect_whole, tmp_path):
        python, parts = shared_python
        prefix = tmp_path / "an odd\npréfixe (deleted)"
        version = "python%d.%d" % python.version[:2]
        shutil.copytree(os.path.join(parts.home, "lib", version), str(prefix / "lib" / version),
                        ignore=shutil.ignore_patterns("test", "__pycache__", "config-*",
                                                      "site-packages", "idlelib", "ensurepip"))
        (prefix / "bin").mkdir()
        path = copy(python.path, prefix / "bin" / version)
        copy(parts.shared, prefix / "lib" / os.path.basename(parts.shared))
        expect_whole(target.start([path, BUSY],
                                  environment={"LD_LIBRARY_PATH": str(prefix / "lib")}))


def other_library(python, embeddable):
    """The libpython of another version."""
    others = [parts.shared for other, parts in embeddable if other.version[:2] != python.version[:2]]
    return others[0] if others else missing("second libpython")


def go_replaced(program, replace):
    """Has replaced.py go on to its end; what is its file is replaced in the midst of that by REPLACE()."""
    program.go()
    wait_used(0.8 * REPLACED_S, program.pid)
    replace()
    program.go()


def check_replaced(run):
    """Nothing of what ran before or after has a wrong name or line, or none."""
    with open(REPLACED, encoding="ascii") as file:
        source = file.read().splitlines()
    first = {"before": source.index("def before(until):") + 1,
             "in_fork": source.index("def in_fork(until):") + 1, "after": 2}
    found = dict.fromkeys(first, 0)
    for frames, count in run.stacks:
        for caller, frame in zip(frames, frames[1:]):
            if frame.name in first:
                file = "after.py" if frame.name == "after" else "replaced.py"
                assert (caller.name, caller.file) == ("<module>", "replaced.py"), frames
                assert frame.file == file and frame.line - first[frame.name] in (1, 2), frames
                found[frame.name] += count
    assert min(found.values()) > 0.5 * REPLACED_S * 999, found
    assert run.ledger["name_unknown"] == run.ledger["unnamed_code_objects"] == 0
    assert run.ledger["lost"] == run.ledger["errors"]["not_supported"] == 0


class TestFilesThatChange:
    def test_deleted(self, static_python, target, expect_whole, tmp_path):
        path = copy(static_python.path, tmp_path / "worker")
        started = target.start([path, BUSY])
        os.unlink(path)
        expect_whole(started)

    def test_deleted_libpython(self, shared_python, target, expect_whole, tmp_path):
        python, parts = shared_python
        library = copy(parts.shared, tmp_path / os.path.basename(parts.shared))
        started = target(python, BUSY, environment={"LD_PRELOAD": library})
        os.unlink(library)
        expect_whole(started)

    def test_upgraded(self, shared_python, embeddable, target, expect_whole, tmp_path):
        python, parts = shared_python
        library = copy(parts.shared, tmp_path / os.path.basename(parts.shared))
        started = target(python, BUSY, environment={"LD_PRELOAD": library})
        os.rename(copy(other_library(python, embeddable), tmp_path / "new"), library)
        expect_whole(started)

    def test_upgraded_while_it_is_recorded(self, shared_python, embeddable, target, profile, tmp_path):
        python, parts = shared_python
        library = copy(parts.shared, tmp_path / os.path.basename(parts.shared))
        new = copy(other_library(python, embeddable), tmp_path / "new")
        started = target(python, REPLACED, REPLACED_S, environment={"LD_PRELOAD": library})
        run = profile.start("-p", started.pid, "-s", "-r", 999)
        run.wait_sampling()
        go_replaced(started, lambda: os.rename(new, library))
        check_replaced(run.load())

    def test_other_mount_namespace(self, static_python, target, expect_whole, require, tmp_path):
        """A root whose /usr/bin/env is the Python: on the host that name is another program."""
        root = tmp_path / "root"
        root.mkdir()
        path = copy(static_python.path, tmp_path / "worker")
        script = 'mount --rbind / "$1" && mount --bind "$2" "$1/usr/bin/env" && ' \
            'exec chroot "$1" /usr/bin/env "$3"'
        expect_whole(target.start([require("unshare"), "-m", "sh", "-c", script, "sh", str(root),
                                   path, BUSY]))


class TestMappings:
    @pytest.fixture
    def remap(self, build):
        return build("remap.c", "-shared", "-fPIC")

    @pytest.mark.parametrize("how", ["split", "anonymous"])
    def test_static(self, static_python, target, expect_whole, remap, how):
        started = target(static_python, BUSY, environment={
            "LD_PRELOAD": remap, "REMAP": how, "REMAP_FILE": ""})
        expect_whole(started)

    @pytest.mark.parametrize("how", ["split", "anonymous"])
    def test_shared(self, shared_python, target, expect_whole, remap, how):
        python, parts = shared_python
        started = target(python, BUSY, environment={
            "LD_PRELOAD": remap, "REMAP": how, "REMAP_FILE": os.path.basename(parts.shared)})
        with open("/proc/%d/maps" % started.pid, encoding="ascii") as maps:
            code = [line for line in maps if "libpython" in line and line.split()[1][2] == "x"]
        assert len(code) == 0 if how == "anonymous" else len(code) > 1
        expect_whole(started)


    def test_mapped_as_data(self, shared_python, target, expect_whole):
        """Its code is in memory more often than anybody looks, but only loaded once."""
        python, parts = shared_python
        code = """import mmap, re
code = next(re.match(r"(\\w+)-(\\w+) r.xp (\\w+) ", line).groups()
            for line in open("/proc/self/maps") if %r in line and "r-xp" in line)
start, end, offset = (int(number, 16) for number in code)
with open(%r, "rb") as library:
    copies = [mmap.mmap(library.fileno(), end - start, mmap.MAP_PRIVATE,
                        mmap.PROT_READ | mmap.PROT_EXEC, offset=offset) for _ in range(20)]
exec(open(%r).read())""" % (os.path.basename(parts.shared), parts.shared, BUSY)
        expect_whole(target.start([python.path, "-c", code]))


@pytest.fixture
def embed(build, target, tmp_path_factory):
    """embed(PYTHON, HOW, SCRIPT): a Target, the program that has the Python in it "shared" or
    "static"; None where there is no such library."""
    def start(python, how, script):
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
        return target.start([*prefix, build("embed.c", *link(parts)), script], environment=environment)
    return start


class TestEmbedding:
    @pytest.mark.proves("embedding")
    @pytest.mark.pythons(which=pythons_with_libraries)
    def test_each_version(self, python, embed, profile, figure):
        """Whole stacks, with the right names and lines, of a program that has this Python in it."""
        legal = DeepLegal(python, roots=("<module>", "work"))
        wrong, ways = {}, []
        for how in "shared", "static":
            program = embed(python, how, os.path.join(PROGRAMS, "deep.py"))
            if program:
                run = profile("-p", program.pid, "-r", 4999, cpu=1)
                program.end()
                legal.judge(run, wrong)
                assert wrong == {}
                whole = run.ledger["python"] - run.ledger["truncated"]
                assert whole >= whole_at_least(run.samples) and run.samples > 1000, run.ledger
                ways.append(how)
        figure(", ".join(ways) or missing("libpython of " + python.name))

    def test_linked(self, embeddable, build, target, expect_whole):
        for _, parts in embeddable:
            expect_whole(target.start([build("embed.c", *link_shared(parts)), BUSY],
                                      environment={"PYTHONHOME": parts.home}))
            target.end()

    def test_copied_data(self, embeddable, build, target, expect_whole, require):
        """The linker gives the program a copy of PyCode_Type, and libpython uses that."""
        python, parts = next((pair for pair in embeddable if pair[0].version[:2] == (3, 11)),
                             embeddable[-1])
        path = build("embed.c", "-no-pie", "-fno-pie", *link_shared(parts))
        symbols = subprocess.run([require("nm"), "-D", "--defined-only", path],
                                 stdout=subprocess.PIPE, universal_newlines=True).stdout
        assert "PyCode_Type" in symbols
        expect_whole(target.start([path, BUSY], environment={"PYTHONHOME": parts.home}))

    @pytest.mark.parametrize("options", [
        ["-pie"], ["-no-pie", "-s"], ["-pie", "-s", "-rdynamic"]
    ], ids=["symbols", "stripped", "exported"])
    def test_static(self, embeddable, build, target, expect_whole, profile, options):
        # 2.7 starts with modules that need the shared one.
        linkable = [(python, parts, parts.pic if "-pie" in options else parts.static)
                    for python, parts in embeddable if python.version >= (3,)]
        linkable = [found for found in linkable if found[2]]
        if not linkable:
            missing("libpython.a that can be linked so")
        for python, parts, library in linkable[:1] + linkable[1:][-1:]:
            path = build("embed.c", *options, *link_static(parts, library))
            started = target.start([path, BUSY], environment={"PYTHONHOME": parts.home})
            if python.version < (3, 10) and options == ["-no-pie", "-s"]:
                # Nothing is left that says what it is: not even the section .PyRuntime.
                expect_refusal(profile.attempt("-p", started.pid, "-d", 5), "no file that it maps")
            else:
                expect_whole(started)
            target.end()

    @pytest.mark.pythons(which=fetched_pythons, since=(3, 13))
    @pytest.mark.parametrize("how", ["linked", "loaded"])
    def test_in_a_root_of_its_own(self, python, build, host, target, expect_whole, how):
        """The versions for which this machine's libc may be too old."""
        parts = find_fetched_parts(python)
        library = os.path.join("/usr", os.path.relpath(parts.shared, parts.home))
        if how == "linked":
            path = build("embed.c", *link_shared(parts))
            started = target.start([debian.ENTER, python.root, path, BUSY])
        else:
            started = host("load=" + library, "start", "run=" + SPIN, "ready", "wait",
                           prefix=(debian.ENTER, python.root))
        with open("/proc/%d/maps" % started.pid, encoding="ascii") as maps:
            assert library in maps.read()
        expect_whole(started)

    def test_go(self, newest, target, expect_whole, require, tmp_path):
        _, parts = newest
        folder, name = os.path.split(parts.shared)
        path = str(tmp_path / "embed")
        subprocess.run([require("go"), "build", "-o", path, os.path.join(PROGRAMS, "embed.go")],
                       check=True, env=dict(os.environ, CGO_ENABLED="1", GOFLAGS="",
                                            CC=require("gcc"), CGO_CFLAGS="-I" + parts.include,
                                            CGO_LDFLAGS=" ".join(link_shared(parts)[2:])))
        expect_whole(target.start([path, BUSY], environment={"PYTHONHOME": parts.home}))


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


class TestLoading:
    def test_loaded_later(self, newest, host, expect_whole):
        _, parts = newest
        expect_whole(host(*load(parts), "start", "run=" + SPIN, "ready", "wait"))

    def test_threads_that_came_in(self, newest, host, profile_some):
        _, parts = newest
        started = host(*load(parts), "start", "run=" + SPIN, "run=" + SPIN, "ready", "wait")
        run = profile_some(started, "-t")
        assert run.count_name("spin") == run.ledger["python"] == run.samples
        tids = {int(re.match(r".*\((\d+)\)", frames[0].label).group(1)) for frames, _ in run.stacks}
        assert tids and tids <= set(started.said)

    def test_not_yet_loaded(self, host, profile):
        started = host("ready", "wait")
        expect_refusal(profile.attempt("-p", started.pid, "-d", 5), "not a Python", "later")

    def test_loaded_but_not_started(self, newest, host, profile):
        python, parts = newest
        started = host(*load(parts), "ready", "spin")
        run = profile("-p", started.pid, "-r", 199, cpu=0.5)
        assert "has loaded Python %d.%d.%d but not started it" % python.version in run.stderr
        assert run.ledger["python"] == 0

    def test_java(self, newest, build, target, require, profile_some):
        _, parts = newest
        library = build("host.c", "-shared", "-fPIC")
        steps = "\n".join([*load(parts), "start",
                           "run=import runpy; runpy.run_path(%r)" % BUSY, "wait"])
        started = target.start([require("java"), os.path.join(PROGRAMS, "Host.java"), library],
                               environment={"HOST_STEPS": steps})
        run = profile_some(started)
        assert sum(run.ledger["errors"].values()) == 0
        assert run.count_name("spin") == run.ledger["python"]


PROCESS = "process %d:"


def samples_of(run, pid, name):
    """Samples of process PID, in a profile of several, that have a frame NAME."""
    return sum(count for frames, count in run.stacks
               if frames[0].label.startswith(PROCESS % pid)
               and any(frame.name == name for frame in frames))


class TestAmongAll:
    """With -a and -s: by what it maps once it runs."""

    # Beyond the 10 s after which all are asked where the kernel does not tell.
    KNOWN_WITHIN_S = 11

    def late(self, newest, host):
        _, parts = newest
        return host("ready", "sleep=1.5", *load(parts), "start", "run=" + SPIN, "wait")

    def test_late(self, newest, host, profile):
        run = profile.start("-a", "-r", 199)
        run.wait_sampling()
        started = self.late(newest, host)
        wait_used(self.KNOWN_WITHIN_S, started.pid)
        run.interrupt().load()
        assert samples_of(run, started.pid, "spin")

    def test_late_child(self, newest, host, profile):
        started = self.late(newest, host)
        run = profile("-p", started.pid, "-s", "-r", 199, cpu=2)
        assert samples_of(run, started.pid, "spin")

    def test_never_known(self, build, host, profile):
        """What may become a Python, and does not as long as it is looked at, is not left out."""
        library = build("decoy.c", "-shared", "-fPIC", "-DDECOY=ZERO")
        started = host("ready", "spin", environment={"LD_PRELOAD": library})
        run = profile("-a", "-r", 199, cpu=1, of=[started.pid])
        samples = collections.Counter()
        for frames, count in run.stacks:
            if frames[-1].label == "[not yet known to be a Python]":
                samples[frames[0].label.startswith(PROCESS % started.pid)] += count
        # Others may come just then.
        assert sum(samples.values()) == run.ledger["errors"]["not_known_yet"]
        assert samples[True] >= 20


class TestSeveral:
    @pytest.fixture
    def two(self, embeddable):
        if len({python.version[:2] for python, _ in embeddable}) < 2:
            missing("second libpython")
        return embeddable[0], embeddable[-1]

    @pytest.mark.parametrize("living", [0, 1])
    def test_one_lives(self, two, host, expect_whole, living):
        _, lives = two[living]
        _, rests = two[1 - living]
        expect_whole(host("load=" + rests.shared, *load(lives), "start", "run=" + SPIN,
                          "load=" + rests.shared, "ready", "wait"))

    @pytest.mark.parametrize("first", ["lives", "rests"])
    def test_loaded_twice(self, newest, host, expect_whole, first):
        """The same file, once in a namespace of the dynamic linker's own; one of them lives."""
        _, parts = newest
        load, again = "load=" + parts.shared, "again=" + parts.shared
        if first == "lives":
            started = host(load, "home=" + parts.home, "start", "run=" + SPIN, again, "ready", "wait")
        else:
            started = host(load, again, "start", "main=exec(open(%r).read())" % BUSY,
                           environment={"PYTHONHOME": parts.home})
        expect_whole(started)

    def test_own_copy_rests(self, embeddable, build, host, expect_whole):
        own = next((parts for _, parts in embeddable if parts.pic), None)
        lives = next((parts for _, parts in reversed(embeddable) if parts is not own), None)
        if not own or not lives:
            missing("libpython.a beside another libpython")
        path = build("host.c", "-DOWN_COPY", *link_static(own, own.pic))
        expect_whole(host(*load(lives), "start", "run=" + SPIN, "ready", "wait", path=path))

    def test_both_live(self, two, host, profile_some):
        (older, first), (newer, second) = two
        older_spin, newer_spin = SPIN.replace("spin", "older"), SPIN.replace("spin", "newer")
        started = host(*load(second), "start", "run=" + newer_spin,
                       *load(first), "start", "run=" + older_spin, "ready", "wait")
        run = profile_some(started)
        said = [line for line in run.stderr.splitlines() if "more than one Python" in line]
        assert len(said) == 1
        assert "shows Python %d.%d.%d" % newer.version in said[0]
        assert "not what Python %d.%d.%d" % older.version in said[0]
        assert run.count_name("newer") == run.ledger["python"]
        assert run.count_name("older") == 0

    @pytest.mark.parametrize("kind", ["ZERO", "NOISE", "OFFSETS", "LIVING", "OUTSIDE", "HEAD"])
    def test_decoy(self, static_python, build, host, target, expect_whole, profile, kind):
        """A library that is no CPython but has its symbols, in a Python and in another program."""
        library = build("decoy.c", "-shared", "-fPIC", "-DDECOY=" + kind)
        code = "import ctypes\nctypes.CDLL(%r)\nexec(open(%r).read())" % (library, BUSY)
        expect_whole(target.start([static_python.path, "-c", code]))
        target.end()
        other = host("ready", "wait", environment={"LD_PRELOAD": library})
        run = profile.attempt("-p", other.pid, "-d", 0.2, "-o", os.devnull, "-f", "folded")
        if kind == "LIVING":
            assert "has loaded Python 3.11.7 but not started it" in run.stderr
        else:
            expect_refusal(run, str(other.pid),
                           "cannot be, or is beyond" if kind == "OFFSETS" else "cannot be told")


# Maps the file that its argument names as code, then takes a lease on it where that is wanted.
MAP = """
import fcntl, mmap, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
if "lease" in sys.argv:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
exec(open(sys.argv[2]).read())
"""


def write_symbols(path, size):
    """An ELF file whose symbols and their names are nothing but holes, SIZE bytes of each."""
    with open(sys.executable, "rb") as executable:
        header = bytearray(executable.read(64))
    struct.pack_into("<QQ", header, 32, 64, 64 + 56)
    struct.pack_into("<HHHHH", header, 54, 56, 1, 64, 3, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 4096, 4096, 4096)
    sections = [(0, 0, 0, 0), (2, 4096, size, 2), (3, 4096 + size, size, 0)]
    with open(path, "wb") as file:
        file.write(header + segment)
        for kind, offset, length, link in sections:
            file.write(struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, length, link, 0, 8, 24))
        file.truncate(4096 + 2 * size)


class TestDamagedFiles:
    def test_truncated(self, shared_python, host, profile, tmp_path):
        """A library that was cut after it was loaded: nothing to be found, and nothing breaks."""
        _, parts = shared_python
        library = copy(parts.shared, tmp_path / "libpython.so")
        started = host("load=" + library, "ready", "wait")
        os.truncate(library, 4096)
        expect_refusal(profile.attempt("-p", started.pid, "-d", 5), str(started.pid))

    def test_no_elf_file(self, static_python, profile, target, expect_whole, tmp_path):
        """Files of all kinds that are mapped as if they were programs."""
        contents = [b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + b"\xff" * 4096, b"#!/bin/sh\n" * 500]
        names = []
        for number, content in enumerate(contents):
            path = tmp_path / str(number)
            path.write_bytes(content.ljust(4096, b"\xff"))
            names.append(str(path))
        with open(str(tmp_path / "huge"), "wb") as huge:
            with open(sys.executable, "rb") as executable:
                huge.write(executable.read(4096))
            huge.truncate(1 << 40)
        names.append(str(tmp_path / "huge"))
        code = "import mmap\nfiles = [open(path, 'rb') for path in %r]\n" \
            "maps = [mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE," \
            " mmap.PROT_READ | mmap.PROT_EXEC) for file in files]\nexec(open(%r).read())"
        expect_whole(target.start([static_python.path, "-c", code % (names, BUSY)]))

    def test_symbols_without_end(self, static_python, target, expect_whole, tmp_path):
        """They take no memory."""
        write_symbols(str(tmp_path / "huge"), 250 << 20)
        started = target.start([static_python.path, "-c", MAP, str(tmp_path / "huge"), BUSY])
        limited = ["sh", "-c", 'ulimit -v 400000 && exec "$@"', "sh"]
        expect_whole(started, prefix=limited)

    def test_leased(self, static_python, target, profile, tmp_path):
        """To open it would take as long as the kernel gives its owner, 45 s, to let go of it."""
        leased = tmp_path / "leased"
        leased.write_bytes(b"x" * 4096)
        with open(str(leased), "rb") as file:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except OSError:
                missing("file system with leases")
        started = target.start([static_python.path, "-c", MAP, str(leased), BUSY, "lease"])
        with open("/proc/sys/fs/lease-break-time", encoding="ascii") as seconds:
            assert profile("-p", started.pid, "-d", 0.2).seconds < int(seconds.read())
