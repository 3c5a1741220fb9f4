# SPDX-License-Identifier: BSD-2-Clause
"""Every way a run can end: by time, by a signal, by its target's end.  A profile is written."""

import errno
import fcntl
import os
import pwd
import re
import signal
import subprocess
import sys
import time

import pytest

from conftest import PATIENCE, PROGRAMS, parse_folded, stolen_seconds, wait_used, whole_at_least

pytestmark = pytest.mark.timed

BURN = os.path.join(PROGRAMS, "burn.py")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
                         ids=lambda number: number.name)
def test_signal_ends_the_run(python, target, profile, number):
    program = target(python, "busy.py")
    run = profile.start("-p", program.pid, "-r", 499)
    run.wait_sampling()
    wait_used(0.3, program.pid)
    sent = time.monotonic()
    run.process.send_signal(number)
    run.load()
    assert time.monotonic() - sent < 15
    assert run.count_name("spin") >= whole_at_least(run.samples)
    assert 0.2 < run.ledger["duration_s"] < run.seconds
    assert program.process.poll() is None


@pytest.mark.alone
def test_target_ends_in_the_first_second(python, target, profile):
    program = target(python, "burn.py", 0.3, "wait")
    run = profile.start("-p", program.pid, "-r", 999)
    run.wait_sampling()
    program.go()
    program.process.wait(timeout=PATIENCE)
    ended = time.monotonic()
    run.load()
    assert time.monotonic() - ended < 15
    expected = 0.3 * run.ledger["rate_hz"]
    # Fewer where a CPU was elsewhere, for the ticks that it missed are one.
    assert 0.3 * expected < run.count_name("inner_loop") < 1.7 * expected
    named = run.count(lambda frame: frame.name in ("main", "<module>"))
    assert named >= 0.9 * run.samples
    assert run.ledger["python"] - named <= 0.01 * run.samples


@pytest.mark.alone
def test_command_that_is_short(python, profile):
    run = profile("-r", 999, command=[*python.command, "-S", "-E", BURN, "0.05"])
    assert run.count_name("inner_loop") >= 0.2 * 0.05 * 999


def test_target_is_killed(any_python, target, profile):
    program = target(any_python, "busy.py")
    run = profile.start("-p", program.pid, "-d", 30, "-r", 499)
    run.wait_sampling()
    wait_used(0.3, program.pid)
    program.process.kill()
    program.process.wait()
    run.load()
    assert run.seconds < 25
    assert run.count_name("spin") >= 0.95 * run.samples > 0


def test_one_of_two_targets_ends(any_python, target, profile):
    """The other is profiled to the end."""
    short = target(any_python, "burn.py", 0.3, "wait")
    long = target(any_python, "busy.py")
    run = profile.start("-p", short.pid, "-p", long.pid, "-r", 499)
    run.wait_sampling()
    short.go()
    short.process.wait(PATIENCE)
    wait_used(1, long.pid)
    assert run.process.poll() is None
    run.interrupt().load()
    assert run.count_name("inner_loop") > 0
    assert run.count_name("spin") > run.count_name("inner_loop")


@pytest.mark.parametrize("seconds", ["1", "0.5"])
def test_duration(any_python, target, profile, seconds):
    program = target(any_python, "busy.py")
    run = profile("-p", program.pid, "-d", seconds)
    assert -0.1 < run.ledger["duration_s"] - float(seconds) < 0.4
    assert float(seconds) <= run.seconds < float(seconds) + 15


def test_mean_rate(any_python, target, profile):
    """So many samples a second of CPU time as were asked for, however the period changes.

    A period that is drawn anew ten times a second spreads the count of one run by about 4 %;
    the mean of six must be closer."""
    seconds = 4
    program = target(any_python, "burn.py", seconds, "wait")
    rates = (99, 999, 4999) * 2
    runs = [profile.start("-p", program.pid, "-r", rate) for rate in rates]
    for run in runs:
        run.wait_sampling()
    stolen = stolen_seconds()
    program.go()
    ratios = [run.load().count_name("inner_loop") / (seconds * rate)
              for run, rate in zip(runs, rates)]
    # What another machine had of its CPU, the CPU's clock has counted, too.
    more = (stolen_seconds() - stolen) / seconds
    assert -0.06 < sum(ratios) / len(ratios) - 1 < 0.06 + more, ratios
    assert all(-0.2 < ratio - 1 < 0.2 + more for ratio in ratios), ratios


def test_target_that_sleeps_gives_an_empty_profile(any_python, target, profile):
    program = target(any_python, "idle.py")
    run = profile.start("-p", program.pid, "-d", 1).finish()
    assert run.status == 0, run.stderr
    assert os.path.getsize(run.output) == 0
    assert "no sample" in run.stderr.lower() or "0 samples" in run.stderr


def test_many_signals_write_one_whole_profile(any_python, target, profile):
    program = target(any_python, "deep.py")
    run = profile.start("-p", program.pid, "-r", 4999)
    run.wait_sampling()
    wait_used(0.5, program.pid)
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGINT] * 3:
        if run.process.poll() is None:
            run.process.send_signal(number)
        time.sleep(0.002)
    run.load()
    assert run.count_name("descend") > 0.9 * run.samples > 0


def test_second_signal_while_it_writes(any_python, target, profile):
    """The profile goes into a small pipe that nobody reads until the signals are sent."""
    program = target(any_python, "deep.py")
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    run = profile.start("-p", program.pid, "-r", 999, "-f", "html", "-o", "-", files=False,
                        stdout=writer)
    os.close(writer)
    run.wait_sampling()
    wait_used(0.5, program.pid)
    run.process.send_signal(signal.SIGINT)
    time.sleep(0.7)
    assert run.process.poll() is None
    for number in (signal.SIGINT, signal.SIGTERM):
        run.process.send_signal(number)
        time.sleep(0.1)
    with open(reader, "rb") as pipe:
        page = pipe.read()
    run.finish()
    assert run.status == 0, run.stderr
    assert page.startswith(b"<!") and page.rstrip().endswith(b"</html>")


def wait_gone(pid):
    """Returns when the process has ended, though nobody may have waited for it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            with open("/proc/%d/stat" % pid, encoding="utf-8") as status:
                if status.read().rpartition(") ")[2][0] == "Z":
                    return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError("process %d goes on" % pid)


def used_seconds(marker):
    """The CPU time of the process whose number is in the file MARKER."""
    try:
        with open("/proc/%d/stat" % int(marker.read_text()), encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_interrupted_command(any_python, profile, tmp_path):
    """Ctrl-C reaches the whole group; the profile is written and the command is gone."""
    marker = tmp_path / "pid"
    command = ["sh", "-c", 'echo $$ >"$0"; exec "$@"', marker, *any_python.command, BURN, "60"]
    run = profile.start("-r", 499, command=command, start_new_session=True)
    run.wait_sampling()
    # A Python that is still starting may take it for another's mistake, and go on.
    deadline = time.monotonic() + PATIENCE
    while used_seconds(marker) < 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)
    run.load()
    assert run.count_name("inner_loop") > 0
    wait_gone(int(marker.read_text()))


def test_output_of_the_command_is_its_own(any_python, profile):
    """Standard output carries what the command wrote, standard error also what we say."""
    script = "import sys; sys.stdout.buffer.write(bytes(range(256))); sys.stderr.write('mine\\n')"
    run = profile.start(command=[*any_python.command, "-c", script]).finish()
    assert run.stdout == bytes(range(256))
    assert "mine" in run.stderr.splitlines()


def test_standard_input_reaches_the_command(any_python, profile):
    reader, writer = os.pipe()
    os.write(writer, b"for the command\n")
    os.close(writer)
    script = "import sys; sys.stdout.write(sys.stdin.read())"
    with open(reader, "rb") as pipe:
        run = profile.attempt("-o", os.devnull, "-f", "folded",
                              command=["sh", "-c", 'exec "$@"', "-", *any_python.command, "-c",
                                       script], stdin=pipe)
    assert run.stdout == b"for the command\n"


@pytest.mark.parametrize("status", [0, 7])
def test_status_of_the_command_is_told(any_python, profile, status):
    run = profile(command=[*any_python.command, BURN, "0.2", "exit=%d" % status])
    assert ("status %d" % status in run.stderr) == (status != 0)
    assert parse_folded(open(run.output, encoding="utf-8").read())


def test_signal_while_the_program_loads(any_python, target, profile):
    """However early it comes, it ends the run as one does later."""
    program = target(any_python, "busy.py")
    for delay in (0.02, 0.05, 0.1):
        run = profile.start("-p", program.pid)
        deadline = time.monotonic() + PATIENCE
        # The signals are blocked before anything else is done.
        while time.monotonic() < deadline:
            with open("/proc/%d/status" % run.pid, encoding="ascii") as status:
                if int(re.search(r"SigBlk:\s*(\w+)", status.read()).group(1), 16) & 2:
                    break
        time.sleep(delay)
        run.process.send_signal(signal.SIGINT)
        run.load()


@pytest.mark.parametrize("verb", [["record", "-a"], ["agent", "--listen", "off", "--store"]],
                         ids=lambda verb: verb[0])
def test_signals_that_cannot_be_read(verb, profile, tmp_path):
    """Nothing could end it then."""
    signalfd4 = "289"
    store = [tmp_path / "store"] if verb[-1] == "--store" else []
    run = profile.attempt(*verb, *store, prefix=[
        sys.executable, os.path.join(PROGRAMS, "deny.py"), signalfd4, str(errno.EPERM)])
    assert run.status == 4 and not run.stdout
    assert "pybpfprof: cannot read signals such as Ctrl-C (signalfd: Operation not permitted): " \
        "allow the system call signalfd4 " in run.stderr
    assert run.stderr.count("\n") == 1 or store


def test_command_that_goes_on(any_python, profile):
    # Who has its output would wait for it, too.
    run = profile("-d", 1, command=[*any_python.command, BURN, "30"], stdout=subprocess.DEVNULL)
    child = int(re.search(r"process (\d+) keeps running", run.stderr).group(1))
    os.kill(child, signal.SIGKILL)


def test_command_has_the_signals_it_would_have(any_python, profile, tmp_path):
    """Blocked and ignored signals are inherited: those the profiler sets for itself must not be."""
    masks = []
    for name, run in ("alone", subprocess.check_call), ("profiled", lambda it: profile(command=it)):
        found = tmp_path / name
        run(["sh", "-c", 'cat /proc/self/status >"$0"; exec "$@"', found, *any_python.command,
             BURN, "0.2"])
        masks.append(re.findall(r"Sig(?:Blk|Ign):\t(\w+)", found.read_text()))
    assert masks[1] == masks[0]


def test_command_runs_as_the_user_of_sudo(any_python, profile):
    nobody = pwd.getpwnam("nobody")
    environment = dict(os.environ, SUDO_UID=str(nobody.pw_uid), SUDO_GID=str(nobody.pw_gid))
    script = 'echo $(id -u) $(id -g) "$HOME" $USER $LOGNAME; exec "$@"'
    run = profile.attempt("-o", os.devnull, "-f", "folded", env=environment,
                          command=["sh", "-c", script, "-", "/usr/bin/python3", "-S", "-c",
                                   "sum(range(10000000))"])
    words = [str(nobody.pw_uid), str(nobody.pw_gid), nobody.pw_dir, "nobody", "nobody"]
    assert run.stdout.decode().split() == words
