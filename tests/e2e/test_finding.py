# SPDX-License-Identifier: BSD-2-Clause
"""How a process's Python is found: by its mapped files, never by a name.

Each test starts busy.py in some way, and expects every sample to have its whole stack.
"""

import fcntl
import os
import re
import shutil
import struct
import subprocess
import sys

import pytest

from conftest import PROGRAMS, missing, wait_used
from embedding import BUSY, copy, dependencies, expect_refusal

pytest_plugins = ["embedding"]

REPLACED, REPLACED_S = os.path.join(PROGRAMS, "replaced.py"), 0.5


def strip_sections(path):
    """Removes the section headers and all bytes outside of segments, as sstrip does."""
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
    """Lets replaced.py run to its end.  REPLACE() replaces the interpreter's file in the middle of that."""
    program.go()
    wait_used(0.8 * REPLACED_S, program.pid)
    replace()
    program.go()


def check_replaced(run):
    """All functions have the right names and lines, before and after the replacement."""
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
    assert all(found.values()), found
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

    def test_upgraded_during_the_recording(self, shared_python, embeddable, target, profile, tmp_path):
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
        """libpython's code is mapped 20 more times, more than the profiler checks, but loaded only once."""
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


# Maps the file of its first argument as code; with "lease", takes a lease on it.
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
    """Writes an ELF file whose symbol table and string table are holes of SIZE bytes each."""
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
        """A library that was truncated after it was loaded: no Python is found, and the profiler does not crash."""
        _, parts = shared_python
        library = copy(parts.shared, tmp_path / "libpython.so")
        started = host("load=" + library, "ready", "wait")
        os.truncate(library, 4096)
        expect_refusal(profile.attempt("-p", started.pid, "-d", 5), str(started.pid))

    def test_invalid_elf_files(self, static_python, profile, target, expect_whole, tmp_path):
        """Various files that are no valid ELF, mapped as code."""
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

    def test_huge_symbol_tables(self, static_python, target, expect_whole, tmp_path):
        """The profiler does not read them into memory."""
        write_symbols(str(tmp_path / "huge"), 250 << 20)
        started = target.start([static_python.path, "-c", MAP, str(tmp_path / "huge"), BUSY])
        limited = ["sh", "-c", 'ulimit -v 400000 && exec "$@"', "sh"]
        expect_whole(started, prefix=limited)

    def test_leased_file(self, static_python, target, profile, tmp_path):
        """Opening it would block for the time that the kernel gives the owner to release the lease, 45 s."""
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
