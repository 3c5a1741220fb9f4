# SPDX-License-Identifier: BSD-2-Clause
"""Errors: their messages, which come before the run starts, and their exit status."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

from conftest import CAPABILITIES, PROGRAMS, as_nobody, missing, parse_folded

FAILED, USAGE, NOT_PYTHON, NOT_ALLOWED, NO_SAMPLE = 1, 2, 3, 4, 5
# Longer than any test waits: errors must be reported before the end.
LONG = 1000


def check(run, status, *words):
    """The run printed one line with all WORDS, or two for a usage error, and nothing on standard output."""
    assert run.status == status, run.stderr
    assert run.stdout == b""
    lines = run.stderr.splitlines()
    assert len(lines) == 1 or status == USAGE and len(lines) <= 2, run.stderr
    assert lines[0].startswith("pybpfprof: ")
    for word in words:
        assert str(word) in run.stderr


@pytest.fixture
def busy(any_python, target):
    return target(any_python, "busy.py")


def ended_pid():
    """The PID of a process that has just ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


class TestProcesses:
    def test_no_such_process(self, profile):
        pid = ended_pid()
        check(profile.attempt("-p", pid, "-d", LONG), FAILED, "no process", pid)

    def test_one_of_several_is_missing(self, profile, busy):
        pid = ended_pid()
        check(profile.attempt("-p", busy.pid, "-p", pid, "-d", LONG), FAILED, pid)

    def test_not_a_python(self, profile):
        sleeper = subprocess.Popen(["sleep", "60"])
        try:
            check(profile.attempt("-p", sleeper.pid, "-d", LONG), NOT_PYTHON, sleeper.pid,
                  "not a Python")
        finally:
            sleeper.kill()
            sleeper.wait()

    def test_zombie(self, profile, any_python):
        process = subprocess.Popen([*any_python.command, "-c", "pass"])
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        try:
            check(profile.attempt("-p", process.pid, "-d", LONG), NOT_PYTHON, process.pid, "zombie")
        finally:
            process.wait()

    def test_kernel_thread(self, profile):
        """If a container has a process 2, a second line names it."""
        run = profile.attempt("-p", 2, "-d", LONG)
        assert run.status == NOT_PYTHON and run.stdout == b""
        assert run.stderr.startswith("pybpfprof: process 2 is a kernel thread, "), run.stderr

    def test_thread_of_a_process(self, profile, any_python, target):
        program = target(any_python, "named_threads.py")
        tid = program.said["first worker"]
        check(profile.attempt("-p", tid, "-d", LONG), USAGE, tid, "-p %d" % program.pid)

    def test_target_ends_before_a_sample(self, profile, any_python, target):
        program = target(any_python, "idle.py")
        run = profile.start("-q", "-p", program.pid, "-r", 1)
        run.wait_sampling()
        # It must use no CPU time before it ends.
        program.process.kill()
        check(run.load(NO_SAMPLE), NO_SAMPLE, program.pid)
        assert run.stacks == []


class TestUsage:
    BAD = [
        ("-p", "0"), ("-p", "-1"), ("-p", "abc"), ("-p", "12x"), ("-p", ""),
        ("-p", "99999999999999999999"), ("-p",), ("-p", "1,"), ("-p", "1,,2"), ("-p", " 1"),
        ("-p", ",".join(map(str, range(1, 4098)))),
        ("-p", "1", "-d", "0"), ("-p", "1", "-d", "-1"), ("-p", "1", "-d", "soon"),
        ("-p", "1", "-d", "1x"), ("-p", "1", "-d", "nan"), ("-p", "1", "-d", "inf"),
        ("-p", "1", "-d", "1e999"),
        ("-p", "1", "-r", "0"), ("-p", "1", "-r", "-99"), ("-p", "1", "-r", "fast"),
        ("-p", "1", "-r", "99x"), ("-p", "1", "-r", "99999999999999999999"),
        ("-p", "1", "-f", "pdf"), ("-p", "1", "-f", ""), ("-p", "1", "--format"),
        ("-p", "1", "--wrong"), ("-p", "1", "-Z"),
        ("-p", "1", "word"), ("word",), (), ("record",), ("--",),
        ("-p", "1", "--", "true"),
    ]

    @pytest.mark.parametrize("arguments", BAD,
                             ids=[" ".join(words)[:40] or "none" for words in BAD])
    def test_bad_arguments(self, profile, arguments):
        check(profile.attempt(*arguments), USAGE, "--help")

    @pytest.mark.parametrize("option, value", [("-p", "abc"), ("-d", "soon"), ("-r", "fast"),
                                               ("-f", "pdf"), ("--wrong", None), ("-Z", None)])
    def test_the_bad_word_is_named(self, profile, option, value):
        words = [word for word in ("-p", "1", option, value) if word]
        check(profile.attempt(*words), USAGE, value or option)

    @pytest.mark.parametrize("words, says", [
        (["top"], "pybpfprof -p PID -d 5 -f text"), (["dump", "-p", "1"], "pybpfprof -p PID -d 1"),
        (["attach", "1"], "use pybpfprof -p PID"),
        (["--nonblocking", "-p", "1"], "never pauses"),
        (["-p", "1", "-f", "raw"], "is called folded here"), (["-p", "1", "-f", "flamegraph"], "is called html here"),
        (["-p", "1", "-o", "x.svg"], "flame.html")])
    def test_options_of_other_profilers(self, profile, words, says):
        """The message says what to use instead."""
        check(profile.attempt(*words), USAGE, says)

    @pytest.mark.parametrize("words, says", [
        (["rport"], "pybpfprof report?"), (["repor"], "pybpfprof report?"), (["agnet", "--store", "x"], "pybpfprof agent?"),
        (["-p", "1", "--durration", "2"], "--duration?"), (["agent", "--stroe", "x"], "--store?"),
        (["report", "--store", "x", "--lable", "a=b"], "--label?"), (["check", "--jsno"], "--json?")])
    def test_did_you_mean(self, profile, words, says):
        check(profile.attempt(*words), USAGE, "did you mean " + says)

    def test_help(self, profile):
        run = profile.attempt("--help")
        assert run.status == 0 and run.stderr == ""
        text = run.stdout.decode()
        for option in ("--pid", "--duration", "--rate", "--output", "--format", "--threads",
                       "--function", "--nolineno", "--full-filenames", "--stats", "--version",
                       "-p", "-d", "-r", "-o", "-f", "-t", "-F", "-q", "-v", "-- COMMAND"):
            assert option in text

    def test_version(self, profile):
        run = profile.attempt("--version")
        assert run.status == 0 and run.stderr == ""
        assert run.stdout.decode().split()[0] == "pybpfprof"


    @pytest.mark.parametrize("option", ["--help", "--version"])
    def test_nowhere_to_print(self, profile, option):
        with open("/dev/full", "w", encoding="ascii") as full:
            run = profile.attempt(option, stdout=full)
        assert run.status == FAILED
        assert run.stderr.splitlines() == [
            "pybpfprof: cannot write to standard output: No space left on device"]


class TestOutputs:
    @pytest.mark.parametrize("output, stats", [
        ("x.html", "./x.html"), ("%p.folded", "{pid}.folded"), ("{pid}.folded", "%p.folded"),
        ("link.html", "target.html"), ("link.html", "link.html"), ("/dev/stdout", "-"),
    ])
    def test_both_files_are_one(self, profile, busy, tmp_path, output, stats):
        """The ledger would replace the profile."""
        os.symlink("target.html", tmp_path / "link.html")
        output, stats = (os.path.join(tmp_path, name.format(pid=busy.pid)) if "." in name else name
                         for name in (output, stats))
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-f", "html", "-o", output,
                              "--stats", stats), USAGE, "its own file")
        assert os.listdir(tmp_path) == ["link.html"]

    def test_both_files_become_one(self, profile, any_python, tmp_path):
        """This is detected too late to refuse it, so the profile is kept."""
        stats = tmp_path / "stats.json"
        run = profile.attempt("-r", 999, "-o", tmp_path / "%p.folded", "--stats", stats, "--", "sh", "-c",
                              'ln -s $$.folded "$0"; exec "$@"', stats, *any_python.command,
                              os.path.join(PROGRAMS, "burn.py"), "0.3")
        assert run.status == FAILED
        assert "cannot write %s: File exists" % stats in run.stderr
        assert parse_folded(stats.read_text())

    def test_folder_that_does_not_exist(self, profile, busy, tmp_path):
        path = tmp_path / "missing" / "out.html"
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-o", path), FAILED,
              tmp_path / "missing", "No such file or directory", "with -o")

    def test_folder_of_the_ledger_that_does_not_exist(self, profile, busy, tmp_path):
        path = tmp_path / "missing" / "stats.json"
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-o", tmp_path / "out.html",
                              "--stats", path),
              FAILED, tmp_path / "missing", "No such file or directory", "with --stats")

    def test_folder_that_cannot_be_written(self, profile, busy):
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-o", "/proc/sys/out.html"), FAILED,
              "/proc/sys")

    def test_a_folder_in_place_of_a_file(self, profile, busy, tmp_path):
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-f", "html", "-o", tmp_path), FAILED,
              tmp_path, "directory")


    def test_a_file_in_place_of_a_folder(self, profile, busy, tmp_path):
        path = tmp_path / "file"
        path.write_text("")
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-o", path / "out.html"), FAILED,
              path, "Not a directory")

    def test_a_folder_that_takes_no_files(self, profile, busy):
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-o", "/proc/out.html"), FAILED,
              "/proc/out.html")

    def test_a_name_that_is_too_long(self, profile, busy, tmp_path):
        path = tmp_path / ("x" * 300 + ".html")
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-o", path), FAILED,
              "File name too long")


    def test_another_users_link(self, profile, busy, tmp_path):
        path = tmp_path / "out.html"
        path.symlink_to("elsewhere.html")
        os.lchown(path, 1234, 1234)
        check(profile.attempt("-p", busy.pid, "-d", LONG, "-o", path), FAILED, path, "link", "1234")


class TestCommands:
    @pytest.mark.parametrize("pattern, status", [
        ("missing/x.html", FAILED), ("missing-%p/x.html", USAGE), ("missing-%t/x.html", USAGE)])
    def test_not_started_without_a_place_for_the_profile(self, profile, tmp_path, pattern, status):
        run = profile.attempt("-o", tmp_path / pattern, command=["touch", tmp_path / "started"])
        check(run, status, pattern.partition("/")[0])
        assert os.listdir(tmp_path) == []

    def test_command_that_does_not_exist(self, profile):
        run = profile.attempt(command=["/nonexistent/program"])
        check(run, FAILED, "/nonexistent/program", "No such file or directory")

    def test_command_that_is_not_executable(self, profile, tmp_path):
        path = tmp_path / "program"
        path.write_text("text")
        check(profile.attempt(command=[path]), FAILED, path, "Permission denied")

    def test_command_that_is_not_a_python(self, profile, tmp_path):
        run = profile.attempt("-o", tmp_path / "out.html", command=["sh", "-c", "sleep 0.5"])
        assert run.status == NOT_PYTHON, run.stderr
        assert "not a Python" in run.stderr or "no Python" in run.stderr
        assert not (tmp_path / "out.html").exists()


class TestPermissions:
    def as_nobody(self, binary, capabilities, *arguments):
        """Runs it as nobody with only these capabilities."""
        words = [*as_nobody(capabilities), binary, *arguments]
        answer = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd="/tmp", timeout=120)
        return answer.returncode, answer.stderr.decode()

    def test_as_nobody(self, public_binary, busy, require):
        require("setpriv")
        status, error = self.as_nobody(public_binary, (), "-p", busy.pid, "-d", LONG)
        assert status == NOT_ALLOWED, error
        assert len(error.splitlines()) == 1
        assert "root" in error and "CAP_" in error

    def test_root_without_capabilities(self, binary, busy, require):
        answer = subprocess.run(
            [require("setpriv"), "--bounding-set=-all", "--inh-caps=-all", binary,
             "-p", str(busy.pid), "-d", str(LONG)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=120)
        error = answer.stderr.decode()
        assert answer.returncode == NOT_ALLOWED, error
        assert len(error.splitlines()) == 1
        assert "CAP_" in error

    @pytest.mark.parametrize("of_all", [False, True], ids=["one", "all"])
    @pytest.mark.parametrize("lacking", sorted(CAPABILITIES))
    def test_each_capability_is_needed_and_named(self, public_binary, busy, require, lacking,
                                                 of_all):
        require("setpriv")
        which = ["-a"] if of_all else ["-p", busy.pid]
        status, error = self.as_nobody(public_binary, CAPABILITIES - {lacking}, *which, "-d", LONG)
        assert status == NOT_ALLOWED, error
        assert len(error.splitlines()) == 1
        assert "(missing CAP_%s):" % lacking.upper() in error

    @pytest.mark.parametrize("lacking", [None, *sorted(CAPABILITIES)])
    def test_the_kernel_requires_each_capability(self, binary, public_binary, busy, require, lacking):
        """No capability could be omitted: a profiler that believes it holds all of them is refused by the
        kernel if one is missing."""
        require("setpriv")
        claiming = shutil.copy(os.path.join(os.path.dirname(binary), "claim_capabilities.so"),
                               os.path.dirname(public_binary))
        words = [*as_nobody(CAPABILITIES - {lacking}), "env", "LD_PRELOAD=" + claiming, public_binary,
                 "-p", busy.pid, "-d", 0.5, "-o", os.devnull]
        answer = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                universal_newlines=True, cwd="/tmp", timeout=60)
        if not lacking:
            assert answer.returncode == 0, answer.stderr
            return
        assert answer.returncode == NOT_ALLOWED, answer.stderr
        assert len(answer.stderr.splitlines()) == 1 and "missing CAP_" not in answer.stderr

    def test_own_process_without_dac_read_search(self, public_binary, any_python, target, require, profile):
        """Its folders in /proc belong to the same user."""
        words = [require("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
        spin = "print('ready', flush=True)\nwhile True: pass"
        program = target.start(words + [any_python.path, "-c", spin])
        profile.binary = public_binary
        run = profile.attempt("-p", program.pid, "-o", os.devnull, cpu=0.5, cwd="/tmp",
                              prefix=as_nobody(CAPABILITIES - {"dac_read_search"}))
        assert run.status == 0, run.stderr

    def test_these_capabilities_are_enough(self, public_binary, busy, require, tmp_path, profile):
        require("setpriv")
        output = tmp_path / "out.folded"
        os.chmod(tmp_path, 0o777)
        for path in tmp_path.parents[:3]:
            if path.stat().st_uid == os.getuid() and str(path).startswith("/tmp/"):
                os.chmod(path, 0o755)
        profile.binary = public_binary
        run = profile.attempt("-p", busy.pid, "-o", output, prefix=as_nobody(CAPABILITIES), cwd="/tmp", cpu=0.5)
        assert run.status == 0, run.stderr
        assert "spin (" in output.read_text()

    def test_perf_events_forbidden(self, public_binary, busy, require):
        """The message names the sysctl that forbids it."""
        require("setpriv")
        held = CAPABILITIES - {"perfmon"}
        status, error = self.as_nobody(public_binary, held, "-p", busy.pid, "-d", LONG)
        assert status == NOT_ALLOWED, error
        assert "perf_event_paranoid" in error

    # System call numbers of x86-64: /usr/include/asm/unistd_64.h.
    DENIED = [
        ("bpf", 321, errno.EPERM, "CAP_BPF", "allow the bpf system call"),
        ("bpf", 321, errno.ENOSYS, "use Linux 5.10 or later", "Function not implemented"),
        ("perf_event_open", 298, errno.EPERM, "perf events", "perf_event_paranoid"),
        ("perf_event_open", 298, errno.ENOENT, "CPU clock", "CONFIG_PERF_EVENTS"),
        ("perf_event_open", 298, errno.ENODEV, "CPU clock", "sandbox"),
        ("process_vm_readv", 310, errno.EPERM, "cannot be read", "Operation not permitted"),
    ]

    @pytest.mark.parametrize("call, number, error, what, mend", DENIED,
                             ids=["%s-%s" % (row[0], errno.errorcode[row[2]]) for row in DENIED])
    def test_a_system_call_is_forbidden(self, binary, busy, call, number, error, what, mend):
        """The call fails as under a container's seccomp profile."""
        answer = subprocess.run(
            [sys.executable, os.path.join(PROGRAMS, "deny.py"), str(number), str(error), binary,
             "-p", str(busy.pid), "-d", str(LONG)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=120)
        assert answer.returncode == NOT_ALLOWED, answer.stderr
        assert len(answer.stderr.splitlines()) == 1
        assert what in answer.stderr and mend in answer.stderr

    def test_no_btf(self, binary, busy, require):
        hide = 'mount -t tmpfs none /sys/kernel/btf && exec "$0" "$@"'
        answer = subprocess.run(
            [require("unshare"), "-m", "sh", "-c", hide, binary, "-p", str(busy.pid), "-d", str(LONG)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
        error = answer.stderr.decode()
        assert answer.returncode == NOT_ALLOWED, error
        assert len(error.splitlines()) == 1
        assert "BTF" in error


class TestFuse:
    """A program in a FUSE mount of another user, which root may not read."""

    NOBODY = 65534

    @pytest.fixture
    def program(self, target, require):
        """A program that runs from a FUSE mount of nobody."""
        if not os.path.exists("/dev/fuse"):
            missing("/dev/fuse")
        folder = tempfile.mkdtemp(dir="/tmp")  # nobody may not look into pytest's
        os.chmod(folder, 0o755)
        target(sys.executable, "fuse_file.py", "/bin/sh", folder, self.NOBODY)
        yield target.start([require("setpriv"), "--reuid=%d" % self.NOBODY, "--regid=%d" % self.NOBODY,
                            "--clear-groups", folder + "/python3", "-c", "echo ready; read line"])
        target.end()
        subprocess.run(["umount", "--lazy", folder], check=True)
        os.rmdir(folder)

    def test_the_message_names_the_user_who_may_read_it(self, profile, program):
        run = profile.attempt("-p", program.pid, "-d", LONG)
        check(run, NOT_ALLOWED, "process %d cannot be read" % program.pid, "FUSE", "as user %d" % self.NOBODY,
              *("CAP_" + name.upper() for name in CAPABILITIES))

    def test_that_user_can_read_it(self, public_binary, program):
        """The profiler reads the program and finds that it is no Python but a shell."""
        answer = subprocess.run([*as_nobody(CAPABILITIES), public_binary, "-p", str(program.pid), "-d", str(LONG)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, cwd="/tmp",
                                timeout=120)
        assert answer.returncode == NOT_PYTHON, answer.stderr


class TestOpenFiles:
    def limited(self, limit):
        """A command's prefix that runs it with this ulimit."""
        return ["sh", "-c", "ulimit %s && exec \"$@\"" % limit, "sh"]

    @pytest.mark.parametrize("number", [7, 12, 20])
    def test_too_few(self, profile, busy, number):
        run = profile.attempt("-p", busy.pid, "-d", LONG, prefix=self.limited("-n %d" % number))
        check(run, NOT_ALLOWED, number, "ulimit -n")

    def test_low_limit_is_raised(self, profile, any_python):
        """The profiler raises its own limit, but not that of the program that it starts."""
        print_limit = ("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0]);"
                       "sum(range(9999999))")
        run = profile.start("-r", 999, prefix=self.limited("-Sn 12"),
                            command=[any_python.path, "-c", print_limit])
        run.load()
        assert run.stdout == b"12\n"


@pytest.mark.parametrize("ending", ["html", "pb.gz"])
def test_little_stack(profile, busy, tmp_path, ending):
    """The stack limit is as low as in programs that start very many threads."""
    prefix = ["sh", "-c", 'ulimit -s 64 && exec "$@"', "sh"]
    run = profile.attempt("-p", busy.pid, "-d", 0.3, "-o", tmp_path / ("out." + ending), prefix=prefix)
    assert run.status == 0, run.stderr


def test_little_address_space(profile, busy):
    """A thread cannot be started for lack of address space.  The message names ulimit -v before ulimit -u."""
    prefix = ["sh", "-c", 'ulimit -v 30000 && exec "$@"', "sh"]
    check(profile.attempt("-p", busy.pid, "-d", LONG, prefix=prefix), NOT_ALLOWED, ": raise ulimit -v (",
          " ulimit -u")


def test_rate_above_the_limit(profile, busy):
    with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as sysctl:
        limit = int(sysctl.read())
    run = profile("-p", busy.pid, "-d", 1, "-r", limit)
    used = run.ledger["rate_hz"]
    # Periods vary, and those shorter than the mean must not exceed the limit.
    assert used == min(limit, 100000) / 1.25
    periods = run.ledger["periods"]
    assert periods["longest_ns"] > periods["shortest_ns"]
    warnings = [line for line in run.stderr.splitlines() if "perf_event_max_sample_rate" in line]
    assert len(warnings) == 1
    assert str(limit) in warnings[0] and "%g Hz" % used in warnings[0]
