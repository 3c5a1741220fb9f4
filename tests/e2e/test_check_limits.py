# SPDX-License-Identifier: BSD-2-Clause
"""pybpfprof check: the effects of limits of the process and of its cgroup."""

import contextlib
import errno
import os
import re

import pytest

from conftest import CAPABILITIES, as_nobody, missing as not_here, remove_group
from test_check import NO_PROGRAM, NOT_ALLOWED, Checks, cover, deny, execute, limited, with_shell
from test_check import tools  # noqa: F401 (a fixture)

FAILED = 1


@contextlib.contextmanager
def memory_group(mib):
    """A command's prefix that runs it in a cgroup with a memory limit of MIB."""
    places = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "memory.limit_in_bytes"), \
             ("/sys/fs/cgroup/cgroup.subtree_control", "memory.max")
    root, limit = next(((os.path.dirname(path), limit) for path, limit in places if os.path.exists(path)), (None, None))
    folder = "%s/pybpfprof-test-%d" % (root, os.getpid())
    if root:
        os.mkdir(folder)
    try:
        if not root or not os.path.exists(os.path.join(folder, limit)):
            not_here("a control group of memory")
        with open(os.path.join(folder, limit), "w", encoding="ascii") as file:
            file.write("%d\n" % (mib << 20))
        yield ["sh", "-c", 'echo $$ >%s/cgroup.procs; exec "$@"' % folder, "sh"]
    finally:
        if root:
            remove_group(folder)


class TestLimits:
    def test_open_files(self, binary):
        checks = Checks(binary, limited("-n", 16))
        assert "open files" in checks.named("MISSING")

    def test_processes(self, public_binary):
        checks = Checks(public_binary, as_nobody(CAPABILITIES) + ["prlimit", "--nproc=1"])
        assert "processes" in checks.named("MISSING")
        assert "ulimit -u" in checks.words("processes") and "seccomp" not in checks.words("processes")

    def test_little_stack(self, binary):
        Checks(binary, limited("-s", 64)).expect()

    def test_address_space(self, binary):
        checks = Checks(binary, limited("-v", 40000))
        assert "memory" in checks.named("MISSING")
        assert re.search("39 MiB of address space.*ulimit -v unlimited", checks.words("memory"))

    @pytest.mark.parametrize("kib, missing", [(20000, True), (60000, False)])
    def test_data(self, binary, kib, missing):
        checks = Checks(binary, limited("-d", kib))
        assert ("memory" in checks.named("MISSING")) == missing
        assert ("memory" in checks.named("LIMITED")) != missing
        assert re.search("[0-9]+ MiB of data.*ulimit -d unlimited", checks.words("memory"))
        assert missing or not checks.named("MISSING")

    def test_unknown_memory_limit(self, binary):
        """Without the cgroup files there may or may not be a limit."""
        checks = Checks(binary, with_shell("mount -t tmpfs none /sys/fs/cgroup")).expect()
        assert "not visible here" in checks.words("memory") and "no limit" not in checks.words("memory")

    def test_too_little_memory_for_the_program(self, binary, tmp_path):
        """The BPF program is then not loaded."""
        script = "\n".join([cover("/proc/$$/cgroup", "0::/a\n", tmp_path),
                            "mount -t tmpfs none /sys/fs/cgroup", "mkdir /sys/fs/cgroup/a",
                            "echo 8388608 >/sys/fs/cgroup/a/memory.max"])
        checks = Checks(binary, with_shell(script) + deny(321, errno.ENOMEM))
        checks.expect({"memory", "ring buffer"} | NO_PROGRAM)
        assert re.search("8 MiB.*record does not start.*raise the limit", checks.words("memory"))
        assert "not enough memory for the BPF program" in checks.words("BPF program")

    @pytest.mark.parametrize("mib", [8, 12])
    def test_control_group_with_too_little(self, binary, mib):
        """The kernel kills the process that loads the BPF program, or fails with ENOMEM."""
        with memory_group(mib) as prefix:
            checks = Checks(binary, prefix)
        assert checks.named("MISSING") >= {"memory", "sample"}
        assert re.search("limited to %d MiB.*record does not start.*raise the limit to [0-9]+ MiB" % mib, checks.words("memory"))

    @pytest.mark.parametrize("membership, file, limit, verdict", [
        ("0::/a/b", "a/memory.max", "67108864", "LIMITED"),
        ("0::/a/b", "a/b/memory.max", "67108864", "LIMITED"),
        ("0::/a/b", "a/b/memory.max", "max", "OK"),
        ("3:memory:/a", "memory/a/memory.limit_in_bytes", "67108864", "LIMITED"),
        ("3:memory:/a", "memory/a/memory.limit_in_bytes", "9223372036854771712", "OK"),
    ])
    def test_memory(self, binary, tmp_path, membership, file, limit, verdict):
        script = "\n".join([cover("/proc/$$/cgroup", membership + "\n", tmp_path),
                            "mount -t tmpfs none /sys/fs/cgroup",
                            "mkdir -p $(dirname /sys/fs/cgroup/%s)" % file,
                            "echo %s >/sys/fs/cgroup/%s" % (limit, file)])
        checks = Checks(binary, with_shell(script)).expect()
        assert checks.checks["memory"]["verdict"] == verdict
        assert verdict == "OK" or re.search("64 MiB.*raise the limit to [0-9]+ MiB", checks.words("memory"))

    # In blocks of 512 bytes.
    @pytest.mark.parametrize("blocks, kib, verdict", [
        (0, 0, "MISSING"), (200, 100, "MISSING"), (1000, 500, "LIMITED"), (200000, 100000, "OK")])
    def test_file_size(self, binary, blocks, kib, verdict):
        checks = Checks(binary, limited("-f", blocks))
        found = {} if verdict == "OK" else {"file size"}
        checks.expect(found if verdict == "MISSING" else (), found if verdict == "LIMITED" else ())
        assert verdict == "OK" or re.search("limited to %d KiB .*ulimit -f unlimited" % kib, checks.words("file size"))

    @pytest.mark.parametrize("options", ["", "--json", "--help"])
    def test_nowhere_to_print(self, binary, tmp_path, options):
        """The exit status is that of any write error, regardless of the verdicts."""
        path = tmp_path / "file"
        for script in "exec %s check %s >%s", "ulimit -f 0; exec %s check %s >%s":
            ended = execute("sh", "-c", script % (binary, options, path))
            assert ended.stdout == ""
        assert ended.returncode == FAILED
        assert ended.stderr == "pybpfprof: cannot write to standard output: File too large\n"
        assert path.read_bytes() == b""
