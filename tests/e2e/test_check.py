# SPDX-License-Identifier: BSD-2-Clause
"""pybpfprof check: each thing that can be missing or limited is provoked once.

Files of /proc and /sys that must not be changed on a shared machine are covered by bind mounts in the
test's own mount namespace.
"""

import errno
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from conftest import CAPABILITIES, PROGRAMS, as_nobody, children_of, missing as not_here, wait_for

USAGE, NOT_ALLOWED = 2, 4
NAMES = [
    "kernel", "BTF", "BPF JIT", "ring buffer", "lockdown", "kernel symbols", "perf events", "uprobes",
    "tracefs", "mappings", "container", "PID namespace", "user namespace", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE",
    "CAP_CHECKPOINT_RESTORE", "CAP_DAC_READ_SEARCH", "ptrace_scope", "perf_event_paranoid",
    "unprivileged_bpf_disabled", "perf_event_max_sample_rate", "perf_cpu_time_max_percent",
    "locked memory", "memory", "open files", "file size", "processes", "signals",
    "BPF program", "native frames", "context switches", "sample",
]
# These may be limited on this machine even without a provocation.
MAY_BE_LIMITED = {"BPF JIT", "kernel symbols", "mappings", "perf_event_max_sample_rate", "perf_cpu_time_max_percent",
                  "memory", "native frames", "context switches"}
VERDICTS = {"OK", "LIMITED", "MISSING"}
NO_PROGRAM = {"BPF program", "sample"}
BRIEF = "import time\nwhile time.process_time() < 0.3: pass"
PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"


def execute(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                          timeout=120, cwd="/")


def run(binary, *arguments, prefix=()):
    return execute(*prefix, binary, "check", *arguments)


class Checks:
    """The checks of one run.  Verifies that its JSON, summary and exit status are consistent."""

    def __init__(self, binary, prefix=()):
        answer = run(binary, "--json", prefix=prefix)
        try:
            told = json.loads(answer.stdout)
        except ValueError:
            raise AssertionError(answer.stderr + answer.stdout) from None
        assert set(told) == {"works", "checks"}
        assert [check["name"] for check in told["checks"]] == NAMES
        for check in told["checks"]:
            assert set(check) == {"name", "verdict", "found", "costs", "mend"}
            assert check["verdict"] in VERDICTS and check["found"]
            if check["verdict"] == "OK":
                assert check["costs"] is None and check["mend"] is None
            else:
                assert check["costs"] and check["mend"]
                assert "pybpfprof check" not in check["mend"]
        self.checks = {check["name"]: check for check in told["checks"]}
        assert told["works"] == (not self.named("MISSING"))
        assert answer.returncode == (0 if told["works"] else NOT_ALLOWED)

    def named(self, verdict):
        return {name for name, check in self.checks.items() if check["verdict"] == verdict}

    def expect(self, missing=(), limited=()):
        """Checks that exactly these are missing or limited; returns itself."""
        assert self.named("MISSING") == set(missing), self.checks
        assert self.named("LIMITED") - MAY_BE_LIMITED <= set(limited) <= self.named("LIMITED")
        return self

    def words(self, name):
        return " ".join(str(self.checks[name][part]) for part in ("found", "costs", "mend"))


def with_shell(script):
    """A command's prefix that first runs SCRIPT in a new mount namespace."""
    return ["unshare", "--mount", "sh", "-e", "-c", script + '\nexec "$@"', "sh"]


def cover(path, content, folder):
    """A script that covers PATH with a file of CONTENT."""
    if not os.path.exists(path.replace("$$", "self")):
        not_here(path)
    file = os.path.join(str(folder), os.path.basename(path))
    with open(file, "w", encoding="ascii") as opened:
        opened.write(content)
    return "mount --bind %s %s" % (file, path)


def deny(call, error):
    return [sys.executable, os.path.join(PROGRAMS, "deny.py"), call, error]


def limited(option, number):
    return ["sh", "-c", 'ulimit %s %d; exec "$@"' % (option, number), "sh"]


def is_running(pid):
    """Whether PID runs.  A zombie has an empty command line."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as command:
            return bool(command.read())
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(autouse=True)
def tools(require):
    for tool in "unshare", "setpriv", "setarch":
        require(tool)


def test_here(binary):
    """This machine has everything that is needed.  The table agrees with the JSON."""
    checks = Checks(binary).expect()
    answer = run(binary)
    assert answer.returncode == 0 and answer.stderr == ""
    lines = [line for line in answer.stdout.splitlines() if line and not line.startswith(" ")]
    assert lines.pop() == "pybpfprof record works here."
    for line, check in zip(lines, checks.checks.values()):
        verdict, name, found = re.fullmatch(r"(\w+) +(%s) +(.+)" % check["name"], line).groups()
        assert (verdict, name, found) == (check["verdict"], check["name"], check["found"])
    assert len(lines) == len(NAMES)


def test_table_with_missing_items(public_binary):
    answer = run(public_binary, prefix=as_nobody(CAPABILITIES - {"perfmon"}))
    assert answer.returncode == NOT_ALLOWED
    lines = answer.stdout.splitlines()
    index = next(i for i, line in enumerate(lines) if re.match("MISSING +CAP_PERFMON ", line))
    assert re.fullmatch(" +effect  record does not start.*", lines[index + 1])
    assert re.fullmatch(" +fix     .*--cap-add=PERFMON", lines[index + 2])
    missing = sum(line.startswith("MISSING ") for line in lines)
    assert lines[-1] == ("pybpfprof record does not work here: fix what is MISSING (%d)." % missing)


def test_usage(binary):
    for words in ("--wrong",), ("word",), ("--json", "word"), ("-p", "1"):
        answer = run(binary, *words)
        assert answer.returncode == USAGE and answer.stdout == ""
        assert words[-1] in answer.stderr or words[0] in answer.stderr
        assert len(answer.stderr.splitlines()) == 1
    answer = run(binary, "--help")
    assert answer.returncode == 0 and answer.stderr == ""
    assert "--json" in answer.stdout and "Exit status" in answer.stdout


class TestRecord:
    """`record` behaves as `check` predicts."""

    @pytest.fixture
    def record(self, binary, any_python, target):
        """record(PREFIX): the ended process of a short recording."""
        program = target(any_python, "busy.py")

        def attempt(prefix):
            return execute(*prefix, binary, "-p", program.pid, "-d", 0.3, "-f", "folded", "-o", "/dev/null")
        return attempt

    @pytest.mark.parametrize("prefix", [
        deny(298, errno.EPERM), deny(310, errno.EPERM), deny(321, errno.EPERM), deny(332, errno.EPERM),
        deny(332, errno.ENOSYS), limited("-v", 40000)], ids=lambda prefix: "-".join(map(str, prefix[2:4])))
    def test_what_does_not_work(self, prefix, binary, record):
        assert run(binary, prefix=prefix).returncode == NOT_ALLOWED
        ended = record(prefix)
        assert ended.returncode not in (0, 3), ended.stderr

    def test_open_files(self, binary, record):
        needed = int(re.search("([0-9]+) are needed", record(limited("-n", 16)).stderr)[1])
        for number, works in (needed - 1, False), (needed, True):
            assert (run(binary, prefix=limited("-n", number)).returncode == 0) == works
            assert (record(limited("-n", number)).returncode == 0) == works

    def test_own_processes_only(self, public_binary):
        answer = run(public_binary, prefix=as_nobody(CAPABILITIES - {"dac_read_search"}))
        assert answer.returncode == 0
        assert answer.stdout.endswith("works here, but only for this user's own processes.\n")

    @pytest.mark.parametrize("target_has, works", [("-all", True), ("-sys_ptrace", True), ("+sys_ptrace", False)])
    def test_root_without_ptrace(self, target_has, works, binary, any_python, target, profile):
        """Without CAP_SYS_PTRACE root cannot read its own processes that have more capabilities, nor
        programs that the profiler starts."""
        def bounded(held):
            return ["setpriv", "--bounding-set=" + held]
        yama = os.path.exists(PTRACE_SCOPE)
        if yama:
            with open(PTRACE_SCOPE, encoding="ascii") as scope:
                if scope.read() != "0\n":
                    pytest.skip("Yama keeps processes from each other here")
        pid = target.start([*bounded(target_has), any_python.path, "-c",
                            "print('ready', flush=True)\nwhile True: pass"]).pid
        words = ("-f", "folded", "-o", "-")
        named = profile.attempt(*words, "-p", pid, prefix=bounded("-sys_ptrace"), cpu=0.5 if works else None)
        assert named.status == (0 if works else NOT_ALLOWED), named.stderr
        assert (b"<module>" in named.stdout) == works
        started = profile.attempt(*words, prefix=bounded("-sys_ptrace"), command=[any_python.path, "-c", BRIEF])
        assert started.status == NOT_ALLOWED and not started.stdout
        assert "missing CAP_SYS_PTRACE" in started.stderr
        answer = run(binary, prefix=bounded("-sys_ptrace"))
        assert answer.returncode == 0
        assert re.search("effect  only this user's own processes .*, and none of them with capabilities that pybpfprof "
                         "lacks; record -- COMMAND does not start\n", answer.stdout)
        assert answer.stdout.endswith("works here, but only for this user's own processes, and only those without "
                                      "capabilities that pybpfprof lacks.\n")


class TestCapabilities:
    def test_all_that_is_needed(self, public_binary):
        Checks(public_binary, as_nobody(CAPABILITIES)).expect()

    def test_none(self, public_binary):
        checks = Checks(public_binary, as_nobody(()))
        assert {"CAP_BPF", "CAP_PERFMON", "CAP_CHECKPOINT_RESTORE"} < checks.named("MISSING")

    @pytest.mark.parametrize("name, missing, limited", [
        ("bpf", {"CAP_BPF", "ring buffer"} | NO_PROGRAM, ()),
        ("perfmon", {"CAP_PERFMON", "perf events"} | NO_PROGRAM, ()),
        ("checkpoint_restore", {"CAP_CHECKPOINT_RESTORE", "processes"}, ()),
        ("dac_read_search", (), {"CAP_DAC_READ_SEARCH"}),
    ])
    def test_one_is_missing(self, public_binary, name, missing, limited):
        checks = Checks(public_binary, as_nobody(CAPABILITIES - {name})).expect(missing, limited)
        assert "--cap-add=" + name.upper() in checks.words("CAP_" + name.upper())

    def test_other_capabilities_can_replace_them(self, public_binary):
        held = {"sys_admin", "sys_ptrace", "dac_override"}
        checks = Checks(public_binary, as_nobody(held)).expect()
        assert "CAP_SYS_ADMIN" in checks.words("CAP_BPF")
        assert "CAP_DAC_OVERRIDE" in checks.words("CAP_DAC_READ_SEARCH")


def test_kernel_symbols(binary, public_binary, tmp_path):
    symbols = "kernel symbols"
    script = cover("/proc/kallsyms", "0000000000000000 T vfs_read\n", tmp_path)
    checks = Checks(binary, with_shell(script)).expect((), {symbols})
    assert "[kernel]" in checks.words(symbols) and "CAP_SYSLOG" in checks.words(symbols)
    script = cover("/proc/kallsyms", "ffffffff81000000 T _text\n", tmp_path)
    assert Checks(binary, with_shell(script)).expect().checks[symbols]["verdict"] == "OK"


# Memory that user space and BPF share for unwind tables: mmap on x86-64, by its length.
CHUNK = "9:1=%d" % (1 << 20)


def test_native_frames(binary):
    """Everything else works without them."""
    native = "native frames"
    checks = Checks(binary).expect()
    assert "can be walked" in checks.words(native)
    checks = Checks(binary, deny(CHUNK, errno.ENOMEM)).expect((), {native})
    assert "--native does not work" in checks.words(native) and "see memory" in checks.words(native)
    checks = Checks(binary, deny(321, errno.EPERM)).expect({"ring buffer"} | NO_PROGRAM, {native})
    assert "not tried" in checks.words(native) and "BPF program" in checks.words(native)


class TestSystemCalls:
    """System calls, by number on x86-64, are denied as by a container's seccomp profile."""

    @pytest.mark.parametrize("call, error, missing, words", [
        (321, errno.EPERM, {"ring buffer"} | NO_PROGRAM, "allow the bpf system call"),
        (321, errno.ENOSYS, {"ring buffer"} | NO_PROGRAM, "5.10"),
        (298, errno.EACCES, {"perf events", "sample"}, "perf_event_paranoid"),
        (298, errno.EPERM, {"perf events", "sample"}, "allow the perf_event_open system call"),
        (298, errno.ENOENT, {"perf events", "sample"}, "CONFIG_PERF_EVENTS"),
        (298, errno.ENOSYS, {"perf events", "sample"}, "CONFIG_PERF_EVENTS"),
        (298, errno.ENODEV, {"perf events", "sample"}, "sandbox"),
        (298, errno.EMFILE, {"perf events", "sample"}, "ulimit -n"),
        (298, errno.EBUSY, {"perf events", "sample"}, "report it"),
        (298, errno.ENOMEM, {"perf events", "sample"}, "not enough memory for perf events"),
        (321, errno.ENOMEM, {"ring buffer"} | NO_PROGRAM, "not enough memory for the BPF program"),
        (310, errno.EPERM, {"processes"}, "process_vm_readv: Operation not permitted"),
        (332, errno.EPERM, {"processes"}, "files: Operation not permitted"),
        (332, errno.ENOSYS, {"processes"}, "files: Function not implemented"),
        (56, errno.EAGAIN, {"processes", "sample"} | NO_PROGRAM, "ulimit -u"),
        (56, errno.EPERM, {"processes", "sample"} | NO_PROGRAM,
         ("fork: Operation not permitted", "allow the system calls clone and clone3")),
        (435, errno.EPERM, {"processes"},
         ("cannot start a thread: Operation not permitted", "allow the system calls clone and clone3")),
        (435, errno.EAGAIN, {"processes"}, "ulimit -u"),
        (289, errno.EPERM, {"signals"}, "allow the system call signalfd4"),
    ])
    def test_one_is_denied(self, binary, call, error, missing, words):
        checks = Checks(binary, deny(call, error)).expect(missing)
        for said in words if isinstance(words, tuple) else (words,):
            assert any(said in checks.words(name) for name in missing)
        if call in (56, 321):
            assert re.search("program: (%s|not tried).* milliseconds" % os.strerror(error),
                             checks.words("mappings"))


def descendants_of(pid):
    """All descendants of PID."""
    children = children_of(pid)
    return children + [other for child in children for other in descendants_of(child)]


class TestChild:
    """The trial process and its spinning child end with the check, no matter how it ends."""

    def test_no_signals(self, binary):
        """kill or prctl(PR_SET_PDEATHSIG) fails."""
        for call in 62, 157:
            Checks(binary, deny(call, errno.EPERM)).expect()

    @pytest.mark.parametrize("at_once", [True, False])
    def test_killed(self, binary, at_once):
        """The check may be killed before its child has begun."""
        for _ in range(20 if at_once else 5):
            check = subprocess.Popen([binary, "check"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not (children := children_of(check.pid)):
                assert check.poll() is None
            if not at_once:
                wait_for(lambda: len(descendants_of(check.pid)) > 1 or check.poll() is not None)
            children = descendants_of(check.pid) or children
            check.kill()
            check.wait()
            wait_for(lambda: not any(is_running(child) for child in children))

    def test_the_trial_is_killed(self, binary):
        """The kernel kills it when memory is short.  The other findings are still reported."""
        check = subprocess.Popen([binary, "check", "--json"], stdout=subprocess.PIPE)
        while not (children := children_of(check.pid)):
            assert check.poll() is None
        os.kill(children[0], signal.SIGKILL)
        told = {found["name"]: found for found in json.loads(check.communicate()[0])["checks"]}
        assert check.returncode == NOT_ALLOWED and list(told) == NAMES
        assert {name for name in told if told[name]["verdict"] == "MISSING"} >= {"memory", "sample"}
        assert "the trial was killed" in told["memory"]["found"]


class TestKernel:
    def test_too_old(self, binary):
        checks = Checks(binary, ["setarch", "--uname-2.6"])
        assert checks.named("MISSING") - {"locked memory"} == {"kernel"}
        assert "5.10" in checks.words("kernel")

    def test_locked_memory(self, binary):
        """Locked memory counts before 5.11.  CAP_SYS_RESOURCE or a higher limit helps."""
        limited = ["setarch", "--uname-2.6", "setpriv", "--bounding-set=-sys_resource",
                   "--inh-caps=-all", "sh", "-c", 'ulimit -l 64; exec "$@"', "sh"]
        checks = Checks(binary, limited).expect({"kernel", "locked memory"})
        assert re.search("[0-9]{4,} KiB .* 64 KiB.*CAP_SYS_RESOURCE.*ulimit -l",
                         checks.words("locked memory"))

    def test_no_btf(self, binary):
        checks = Checks(binary, with_shell("mount -t tmpfs none /sys/kernel/btf"))
        checks.expect({"BTF"} | NO_PROGRAM)
        assert "CONFIG_DEBUG_INFO_BTF" in checks.words("BTF") and "mount" not in checks.words("BTF")

    def test_no_sysfs(self, binary):
        """Then BTF is not said to be missing in the kernel.  libbpf prints no messages of its own."""
        prefix = with_shell("mount -t tmpfs none /sys")
        checks = Checks(binary, prefix).expect({"BTF", "perf events"} | NO_PROGRAM)
        assert "CONFIG_DEBUG_INFO_BTF" not in checks.words("BTF")
        assert "mount -t sysfs sysfs /sys" in checks.words("BTF")
        assert run(binary, prefix=prefix).stderr == ""
        record = execute(*prefix, binary, "record", "-a", "-d", 1, "-o", "-")
        assert record.returncode == NOT_ALLOWED
        assert re.fullmatch("pybpfprof: sysfs is not mounted at /sys, .*: mount -t sysfs .*\n", record.stderr)

    @pytest.mark.parametrize("script, reason", [
        ("mount -t tmpfs none /sys/devices/system/cpu", "No such file"),
        ("mount --bind /dev/null /sys/devices/system/cpu/online", "No data"),
    ])
    def test_no_cpus(self, binary, script, reason):
        """Neither check nor record takes this for a machine with one CPU."""
        checks = Checks(binary, with_shell(script)).expect({"perf events"} | NO_PROGRAM)
        assert re.search("online: " + reason + ".*sysfs", checks.words("perf events"))
        record = subprocess.run([*with_shell(script), binary, "record", "-a", "-d", "1", "-o", "-"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        assert record.returncode == NOT_ALLOWED and not record.stdout
        assert re.fullmatch("pybpfprof: .*/online: " + reason + ".*: mount sysfs .*\n", record.stderr)

    def test_lockdown(self, binary):
        if not os.path.isdir("/sys/kernel/security"):
            not_here("/sys/kernel/security")
        script = ("mount -t tmpfs none /sys/kernel/security\n"
                  "echo 'none integrity [confidentiality]' >/sys/kernel/security/lockdown")
        checks = Checks(binary, with_shell(script)).expect({"lockdown"})
        assert "integrity is fine" in checks.words("lockdown")
        checks = Checks(binary, with_shell(script.replace("[confidentiality]", "confidentiality")
                                           .replace("integrity", "[integrity]"))).expect()
        assert checks.checks["lockdown"]["found"] == "integrity"

    def test_no_jit(self, binary, tmp_path):
        script = cover("/proc/sys/net/core/bpf_jit_enable", "0\n", tmp_path)
        checks = Checks(binary, with_shell(script) + deny(321, errno.EPERM))
        checks.expect({"ring buffer"} | NO_PROGRAM, {"BPF JIT"})
        assert "bpf_jit_enable=1" in checks.words("BPF JIT")
        # If the program loads, its own JIT state counts more than the setting.
        assert Checks(binary, with_shell(script)).expect().checks["BPF JIT"]["verdict"] == "OK"


class TestNotNeeded:
    """Things that a machine may lack or hide.  This is reported, and profiling works without them."""

    TRACEFS = ("mount -t tmpfs none /sys/kernel/tracing\n"
               "mount -t tmpfs none /sys/kernel/debug 2>/dev/null || true\n")

    def found(self, binary, name, prefix):
        return Checks(binary, prefix).expect().checks[name]["found"]

    def test_uprobes(self, binary):
        if not os.path.exists("/sys/bus/event_source/devices/uprobe/type"):
            not_here("uprobe in /sys/bus/event_source/devices")
        assert self.found(binary, "uprobes", ()) == "available, not needed"
        hidden = with_shell("mount -t tmpfs none /sys/bus/event_source/devices")
        assert self.found(binary, "uprobes", hidden) == "not available, not needed"

    def test_uprobes_want_a_capability(self, public_binary):
        checks = Checks(public_binary, as_nobody(CAPABILITIES))
        assert checks.checks["uprobes"]["found"] == "not available without CAP_SYS_ADMIN, not needed"

    def test_tracefs(self, binary):
        mounted = self.TRACEFS + "mkdir /sys/kernel/tracing/events\n"
        assert self.found(binary, "tracefs", with_shell(mounted)) == "mounted, not needed"
        assert self.found(binary, "tracefs", with_shell(self.TRACEFS)) == "not mounted, not needed"

    def test_tracefs_that_is_not_readable(self, public_binary):
        closed = with_shell(self.TRACEFS + "chmod 700 /sys/kernel/tracing\n")
        held = as_nobody(CAPABILITIES - {"dac_read_search"})
        checks = Checks(public_binary, closed + held).expect((), {"CAP_DAC_READ_SEARCH"})
        assert checks.checks["tracefs"]["found"] == "not visible to this user, not needed"

    def test_hardware_events(self, binary):
        """They are listed.  The CPU clock works without them."""
        assert re.match("cpu-clock, task-clock, context-switches, (no )?cycles, (no )?instructions, "
                        "(no )?cache-misses; ", self.found(binary, "perf events", ()))


class TestSettings:
    @pytest.mark.parametrize("name, value, words", [
        ("perf_event_max_sample_rate", 1000, "up to 800 a higher .*=100000"),
        ("perf_event_max_sample_rate", 100, "fewer samples than by default .*=100000"),
        ("perf_cpu_time_max_percent", 1, "=25"),
    ])
    def test_one_limits(self, binary, tmp_path, name, value, words):
        script = cover("/proc/sys/kernel/" + name, "%d\n" % value, tmp_path)
        checks = Checks(binary, with_shell(script)).expect((), {name})
        assert re.search(words, checks.words(name))

    def settings(self, folder, **values):
        """A script that replaces all of /proc/sys/kernel with these settings."""
        for name, value in values.items():
            path = os.path.join(str(folder), name.replace("__", "/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write("%s\n" % value)
        return "mount --bind %s /proc/sys/kernel" % folder

    def test_nobody_may_trace(self, binary, tmp_path):
        """With ptrace_scope 3 record fails at its start."""
        script = self.settings(tmp_path, perf_event_paranoid=2, yama__ptrace_scope=3)
        checks = Checks(binary, with_shell(script)).expect({"ptrace_scope"})
        assert "ptrace_scope=2" in checks.words("ptrace_scope")
        ended = execute(*with_shell(script), binary, "record", "-a", "-d", 1, "-o", "-")
        assert ended.returncode == NOT_ALLOWED and not ended.stdout
        assert re.fullmatch("pybpfprof: .*ptrace_scope is 3: .*ptrace_scope=2 .*\n", ended.stderr)
        (tmp_path / "yama" / "ptrace_scope").write_text("2\n")
        Checks(binary, with_shell(script)).expect()

    @pytest.mark.parametrize("scope", [None, 0, 1, 2])
    def test_own_processes_without_ptrace(self, scope, public_binary, any_python, target, tmp_path, profile):
        """A user's own processes need CAP_SYS_PTRACE only if Yama restricts tracing.  record behaves alike."""
        if not scope and os.path.exists(PTRACE_SCOPE):
            with open(PTRACE_SCOPE, encoding="ascii") as real:
                if real.read() != "0\n":
                    pytest.skip("Yama keeps processes from each other here")
        yama = {} if scope is None else {"yama__ptrace_scope": scope}
        script = self.settings(tmp_path, perf_event_paranoid=2, **yama)
        tmp_path.chmod(0o755)
        prefix = with_shell(script) + as_nobody(CAPABILITIES - {"sys_ptrace"})
        found = {"CAP_SYS_PTRACE"}
        checks = Checks(public_binary, prefix).expect(*((found, ()) if scope else ((), found)))
        assert "--cap-add=SYS_PTRACE" in checks.words("CAP_SYS_PTRACE")
        spin = "print('ready', flush=True)\nwhile True: pass"
        own = target.start([*as_nobody(()), any_python.path, "-c", spin])
        other = target.start([any_python.path, "-c", spin])
        profile.binary = public_binary
        for pid, command, wanted in ((own.pid, (), scope), (None, [any_python.path, "-c", BRIEF], scope),
                                     (other.pid, (), True)):
            ended = profile.attempt("-f", "folded", "-o", "-", *(("-p", pid) if pid else ()), command=command,
                                    prefix=prefix, cwd="/", cpu=None if wanted or command else 0.5)
            assert ended.status == (NOT_ALLOWED if wanted else 0), ended.stderr
            assert ("(missing CAP_SYS_PTRACE):" in ended.stderr) == bool(wanted)
            assert (b"<module>" in ended.stdout) != bool(wanted)

    @pytest.mark.parametrize("script", [None, "mount -t proc -o subset=pid none /proc"],
                             ids=["none", "subset"])
    def test_unreadable_settings(self, script, binary, any_python, target, tmp_path):
        """An unreadable setting is no failure: the trial decides, and record works."""
        prefix = with_shell(script or self.settings(tmp_path))
        checks = Checks(binary, prefix).expect()
        for name in "perf_event_paranoid", "unprivileged_bpf_disabled", "perf_event_max_sample_rate":
            assert "unknown" in checks.words(name)
        assert ("unknown" in checks.words("ptrace_scope")) == bool(script)
        record = execute(*prefix, binary, "-p", target(any_python, "busy.py").pid, "-d", 0.3, "-f", "folded",
                         "-o", "/dev/null")
        assert record.returncode == 0, record.stderr

    def test_paranoid(self, binary, tmp_path):
        """Above mainline's highest value, 2, distribution kernels require CAP_SYS_ADMIN."""
        script = cover("/proc/sys/kernel/perf_event_paranoid", "3\n", tmp_path)
        checks = Checks(binary, with_shell(script) + deny(298, errno.EACCES))
        checks.expect({"perf_event_paranoid", "perf events", "sample"})
        assert "=2" in checks.words("perf_event_paranoid")
        Checks(binary, with_shell(script)).expect()


class TestSurroundings:
    def test_user_namespace(self, public_binary):
        checks = Checks(public_binary, ["unshare", "--user", "--map-root-user"])
        assert "user namespace" in checks.named("MISSING")

    def test_pid_namespace(self, binary):
        checks = Checks(binary, ["unshare", "--pid", "--fork", "--mount-proc"]).expect()
        assert "a container's" in checks.words("PID namespace")

    def test_proc_of_another_pid_namespace(self, binary):
        checks = Checks(binary, ["unshare", "--pid", "--fork"])
        assert "PID namespace" in checks.named("MISSING")
        assert "mount the /proc of this namespace" in checks.words("PID namespace")

    @pytest.mark.parametrize("sign, name", [("/run/.containerenv", "Podman"),
                                            ("/run/systemd/container", "systemd")])
    def test_container(self, binary, sign, name):
        """A sign file alone gives only "perhaps", because anything may have left it there."""
        script = "mount -t tmpfs none /run; mkdir -p $(dirname %s); touch %s" % (sign, sign)
        found = self.container(binary, script)
        assert re.match("perhaps, %s.*: only by %s" % (name, sign), found) or self.has_overlay(binary)

    @staticmethod
    def has_overlay(binary):
        return "by its overlay root" in Checks(binary).words("container")

    @staticmethod
    def container(binary, script, within=()):
        return Checks(binary, with_shell(script) + list(within)).expect().checks["container"]["found"]

    @pytest.mark.parametrize("group, runtime", [
        ("/system.slice/docker-%s.scope" % (64 * "a"), ", docker"),
        ("/kubepods.slice/kubepods-pod%s.slice/cri-containerd-%s.scope"
         % ("12345678_0000_4000_8000_000000000000", 64 * "b"), ", containerd"),
        ("/kubepods/burstable/pod12345678-0000-4000-8000-000000000000/" + 64 * "c", ""),
    ])
    def test_container_of_a_control_group(self, binary, tmp_path, group, runtime):
        found = self.container(binary, cover("/proc/$$/cgroup", "0::%s\n" % group, tmp_path))
        assert found == "yes%s: by its cgroup name" % runtime

    def test_container_with_processes_of_its_own(self, binary):
        within = ["unshare", "--pid", "--fork", "--mount-proc"]
        found = self.container(binary, "mount -t tmpfs none /run", within)
        assert re.fullmatch("yes(, Docker)?: by its PID namespace", found) or self.has_overlay(binary)
