# SPDX-License-Identifier: BSD-2-Clause
"""The capabilities that the profiler keeps while it samples, and those of a program that it starts."""

import contextlib
import os
import platform
import re
import shutil
import struct
import time

import pytest

from conftest import CAPABILITIES, PATIENCE, PROGRAMS, as_nobody, missing, wait_for, wait_used

# From linux/capability.h.
NUMBERS = {"chown": 0, "dac_override": 1, "dac_read_search": 2, "fowner": 3, "sys_ptrace": 19,
           "sys_admin": 21, "syslog": 34, "perfmon": 38, "bpf": 39, "checkpoint_restore": 40}
# VFS_CAP_REVISION_2 with the effective flag.
FILE_CAPABILITIES = 0x02000001
TO_READ = {"sys_ptrace", "checkpoint_restore", "dac_read_search"}
TO_WRITE_AS_ROOT = {"dac_override", "chown", "fowner"}
SHOW = ("import os, sys\n"
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(*[line for line in lines if line.startswith(('Cap', 'NoNew', 'Secc'))], sep='\\n')\n")


def parse(text):
    """The capability sets, and other numbers, of a /proc/PID/status."""
    found = re.findall(r"^(Cap\w+|NoNewPrivs|Seccomp_filters):\t(\w+)$", text, re.MULTILINE)
    return {name: int(value, 16) for name, value in found}


def status_of(pid):
    with open("/proc/%s/status" % pid, encoding="ascii") as status:
        return parse(status.read())


def numbers(names):
    return sum(1 << NUMBERS[name] for name in names)


def kept_to_use_maps():
    """CAP_BPF, if this kernel requires it for operations on a map."""
    release = tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups()))
    with open("/proc/sys/kernel/unprivileged_bpf_disabled", encoding="ascii") as disabled:
        return {"bpf"} if release < (5, 19) and disabled.read().strip() != "0" else set()


def await_drop(run):
    """The status of a profiler that has dropped its privileges."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and run.process.poll() is None:
        status = status_of(run.pid)
        if status["Seccomp_filters"] > status_of("self")["Seccomp_filters"]:
            return status
        time.sleep(0.01)
    raise AssertionError("gave nothing up: " + run.said())


@pytest.fixture
def program(any_python, target):
    """A program that waits, then uses half a second of CPU time."""
    return target(any_python, "burn.py", 0.5, "wait")


def check_dropped(status, kept):
    assert status["CapPrm"] == status["CapEff"] == numbers(kept)
    assert status["CapInh"] == status["CapAmb"] == 0
    assert status["NoNewPrivs"] == 1


def test_as_root(profile, any_python, target):
    busy = target(any_python, "busy.py")
    run = profile.start("-p", busy.pid)
    kept = TO_READ | TO_WRITE_AS_ROOT | kept_to_use_maps()
    check_dropped(await_drop(run), kept)
    # Capabilities are per thread. The other thread reads the target.
    threads = wait_for(lambda: [tid for tid in os.listdir("/proc/%d/task" % run.pid) if int(tid) != run.pid])
    for thread in threads:
        with contextlib.suppress(FileNotFoundError):
            check_dropped(status_of(thread), kept)
    wait_used(0.5, busy.pid)
    assert run.interrupt().load().count_name("leaf")


def test_as_nobody(public_binary, profile, program, require):
    require("setpriv")
    profile.binary = public_binary
    run = profile.start("-p", program.pid, "-f", "folded", "-o", "-", files=False,
                        prefix=as_nobody(CAPABILITIES))
    check_dropped(await_drop(run), TO_READ | kept_to_use_maps())
    program.go()
    assert b"inner_loop (" in run.finish().stdout
    assert run.status == 0


def test_a_program_executed_after_the_drop_is_read(profile, any_python, target, tmp_path):
    """After the drop the profiler still reads a program that the target executes. It writes the profile into a
    folder of the user of sudo, who owns the file."""
    program = target.start([*any_python.command, "-c",
                            "import os, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
                            "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
                            os.path.join(PROGRAMS, "burn.py"), "1.5"])
    os.chown(tmp_path, 65534, 65534)
    os.chmod(tmp_path, 0o700)
    output = tmp_path / "out.folded"
    run = profile.start("-p", program.pid, "-r", 999, "-o", output, files=False,
                        env=dict(os.environ, SUDO_UID="65534", SUDO_GID="65534"))
    await_drop(run)
    program.go()
    run.finish()
    assert run.status == 0, run.stderr
    assert "inner_loop (" in output.read_text()
    assert output.stat().st_uid == 65534


def test_a_program_keeps_roots_capabilities(profile, any_python):
    """A program started by root keeps all of root's capabilities."""
    run = profile.attempt("-f", "folded", "-o", os.devnull,
                          command=[*any_python.command, "-c", SHOW])
    found, own = parse(run.stdout.decode()), status_of("self")
    assert found == own


def test_a_program_does_not_get_the_profilers_capabilities(public_binary, profile, any_python, require):
    """The started program does not inherit the profiler's capabilities, optional ones included. It keeps
    others."""
    require("setpriv")
    profile.binary = public_binary
    given = CAPABILITIES | {"sys_admin", "syslog"}
    run = profile.attempt("-f", "folded", "-o", os.devnull, prefix=as_nobody(given | {"kill"}),
                          command=[*any_python.command, "-c", SHOW])
    found = parse(run.stdout.decode())
    kill = 1 << 5
    assert found["CapPrm"] == found["CapEff"] == found["CapAmb"] == kill
    assert found["CapBnd"] == numbers(given) | kill
    assert found["NoNewPrivs"] == status_of("self")["NoNewPrivs"]


def test_a_program_may_call_sudo(profile, any_python, public_binary):
    """No restriction such as no_new_privs disables set-user-ID programs."""
    folder = os.path.dirname(public_binary)
    if os.statvfs(folder).f_flag & os.ST_NOSUID or status_of("self")["NoNewPrivs"]:
        missing("file system with set-user-ID programs")
    program = shutil.copy(shutil.which("id"), os.path.join(folder, "set-user-id"))
    os.chmod(program, 0o4755)
    run = profile.attempt("-f", "folded", "-o", os.devnull, command=[program, "-u"],
                          env=dict(os.environ, SUDO_UID="65534", SUDO_GID="65534"))
    assert run.stdout == b"0\n", run.stderr


def test_file_capabilities(public_binary, profile, program):
    """File capabilities on the binary are enough to profile as an ordinary user."""
    folder = os.path.dirname(public_binary)
    profile.binary = shutil.copy(public_binary, os.path.join(folder, "with-capabilities"))
    held = numbers(CAPABILITIES)
    try:
        os.setxattr(profile.binary, "security.capability",
                    struct.pack("<5I", FILE_CAPABILITIES, held & 0xffffffff, 0, held >> 32, 0))
    except OSError as reason:
        missing("capabilities of files (%s)" % reason)
    run = profile.start("-p", program.pid, "-f", "folded", "-o", "-", files=False,
                        prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
    await_drop(run)
    program.go()
    assert b"inner_loop (" in run.finish().stdout
    assert run.status == 0, run.stderr
