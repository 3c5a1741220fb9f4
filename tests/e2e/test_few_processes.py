# SPDX-License-Identifier: BSD-2-Clause
"""A low limit of processes and threads: what record and the agent do, and that check predicts it.

The limit is that of a user without other processes, or of a control group.
"""

import contextlib
import errno
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import CAPABILITIES, as_nobody, missing, remove_group, wait_for, wait_used
from test_check import NOT_ALLOWED, deny, execute, run, with_shell
from test_pods import cluster  # noqa: F401 (a fixture)
from push_servers import authority, backend  # noqa: F401 (fixtures)

FAILED = 1
CLONE, CLONE3 = 56, 435
# A UID that no other process has.
WITHOUT_PROCESSES = 65432
MENDS = "ulimit -u or the cgroup's pids.max "
RETRIED = re.compile("until a thread can be started|retrying in ")
SPIN = "import time\ndef spin():\n while time.process_time() < %s: pass\n%sspin()"
READY = "print('ready', flush=True)\n"


def at_most(number):
    return as_nobody(CAPABILITIES, WITHOUT_PROCESSES) + ["prlimit", "--nproc=%d" % number]


def has_processes(uid):
    """Zombies count, too, as they do for the limits."""
    def belongs(pid):
        try:
            return os.stat("/proc/" + pid).st_uid == uid
        except FileNotFoundError:
            return False
    return any(belongs(name) for name in os.listdir("/proc") if name.isdigit())


@contextlib.contextmanager
def control_group(number):
    """The prefix that runs a command in a control group limited to NUMBER processes and threads."""
    root = next((path for path in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")
                 if os.path.exists(path + "/cgroup.procs") and "pids" in controllers(path)), None)
    if not root:
        missing("a control group of pids")
    folder = "%s/pybpfprof-test-%d" % (root, os.getpid())
    os.mkdir(folder)
    try:
        with open(folder + "/pids.max", "w", encoding="ascii") as limit:
            limit.write("%d\n" % number)
        yield ["sh", "-c", 'echo $$ >%s/cgroup.procs; exec "$@"' % folder, "sh"]
    finally:
        remove_group(folder)


def controllers(path):
    """The controllers that are enabled for the groups below PATH."""
    try:
        with open(path + "/cgroup.subtree_control", encoding="ascii") as file:
            return file.read().split()
    except FileNotFoundError:
        return [os.path.basename(path)]


@pytest.fixture
def spinning(any_python, target):
    return target.start([any_python.path, "-c", SPIN % (1000, READY)]).pid


@pytest.fixture
def record(public_binary, any_python, spinning, profile):
    """record(PREFIX): {way: run} for each way to record."""
    profile.binary = public_binary
    words = ("record", "-r", 199, "-f", "folded", "-o", "-")

    def one(prefix, *more, command=()):
        wait_for(lambda: not has_processes(WITHOUT_PROCESSES), "the end of what ran before")
        run = profile.start(*words, *more, prefix=prefix, command=command, files=False, cwd="/")
        if not command:
            wait_for(lambda: run.process.poll() is not None or run.is_sampling())
            if run.process.poll() is None:
                wait_used(0.5, spinning)
                run.interrupt()
        return run.finish()
    return lambda prefix: {"-p": one(prefix, "-p", spinning), "-a": one(prefix, "-a"),
                           "--": one(prefix, command=[any_python.path, "-c", SPIN % (0.5, "")])}


def judge(number, record, public_binary, prefix):
    """A recording that starts has named samples.  One that does not says why.  check reports the same."""
    status = {}
    for way, ended in record(prefix).items():
        status[way] = ended.status
        assert (b"spin" in ended.stdout) == (ended.status == 0), (way, ended.stdout, ended.stderr)
        if ended.status:
            assert not ended.stdout
            assert re.fullmatch(r"pybpfprof: [^\n]*\b%s[^\n]*\n" % MENDS, ended.stderr), ended.stderr
        elif way != "-a":
            assert "WARNING" not in ended.stderr and "cannot" not in ended.stderr
    assert status == {"-p": 0 if number > 1 else NOT_ALLOWED, "-a": 0 if number > 1 else NOT_ALLOWED,
                      "--": 0 if number > 2 else FAILED if number > 1 else NOT_ALLOWED}
    wait_for(lambda: not has_processes(WITHOUT_PROCESSES), "the end of what ran before")
    check = run(public_binary, prefix=prefix)
    assert check.returncode == (0 if not any(status.values()) else NOT_ALLOWED), check.stdout
    assert check.stderr == ""
    if number == 2:
        assert re.search(r"^MISSING  processes +no room for 1 more .*\n"
                         r" +effect  record -- COMMAND does not start; record -p and -a do\n"
                         r" +fix     raise " + MENDS, check.stdout, re.M), check.stdout


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_limit_of_a_user(number, public_binary, record):
    judge(number, record, public_binary, at_most(number))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_limit_of_a_control_group(number, public_binary, record):
    with control_group(number) as prefix:
        judge(number, record, public_binary, prefix)


@pytest.mark.parametrize("call, ways", [(CLONE, ["--"]), (CLONE3, ["-p", "--", "-a"])])
def test_denied_system_calls(call, ways, record):
    """A seccomp filter denies the call.  The message does not advise to raise a limit."""
    for way, ended in record(deny(call, errno.EPERM)).items():
        assert (ended.status != 0) == (way in ways), ended.stderr
        assert way not in ways or re.fullmatch(
            r"pybpfprof: [^\n]*Operation not permitted[^\n]*: allow the system calls clone and clone3 in [^\n]*\n",
            ended.stderr), ended.stderr


def test_threads_that_cannot_start_for_a_while(binary, spinning, profile):
    """The profiler warns once, and reads the processes as soon as a thread can be started."""
    environment = dict(os.environ, FAIL_THREADS="6",
                       LD_PRELOAD=os.path.join(os.path.dirname(binary), "fail_starts.so"))
    ended = profile("-a", "-r", 199, env=environment, cpu=1, of=[spinning])
    assert ended.stderr.count("until a thread can be started") == 1, ended.stderr
    assert MENDS in ended.stderr
    assert ended.count_name("spin") > 0, ended.stacks
    environment["FAIL_THREADS"] = "1000000"
    ended = profile("-a", "-r", 199, env=environment, cpu=0.5, of=[spinning])
    assert ended.stderr.count("until a thread can be started") == 1, ended.stderr


@pytest.fixture
def folder():
    """A folder that every user may write to."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o777)
        yield path


class TestAgent:
    """The agent works from a certain limit on, and not with one less.  check reports both."""

    @pytest.fixture
    def judge(self, public_binary, folder, spinning, profile):
        profile.binary = public_binary

        def wait_for_none():
            wait_for(lambda: not has_processes(WITHOUT_PROCESSES), "the end of what ran before")

        def judge(number, works, *options, prefix=()):
            words = ["--store", os.path.join(folder, "store"), "--store-size", "1M", "--listen", "off",
                     *options]
            prefix = [*prefix, *at_most(number)]
            wait_for_none()
            check = run(public_binary, "--agent", *words, prefix=prefix)
            wait_for_none()
            assert check.returncode in (0, NOT_ALLOWED) and check.stderr == ""
            run_agent = profile.start("agent", "--window", "0.2s", *words, prefix=prefix, files=False, cwd="/")

            def complains():
                """With a sufficient limit, the agent may have to retry, and says so.  That is no complaint."""
                lines = run_agent.said().splitlines()
                if check.returncode == 0:
                    lines = [line for line in lines if not RETRIED.search(line)]
                return any(MENDS in line or "thread failed to start" in line for line in lines)
            wait_for(lambda: run_agent.process.poll() is not None or complains() or works())
            did = run_agent.process.poll() is None and not complains()
            said = run_agent.interrupt().finish().stderr
            assert did == (check.returncode == 0), said
            if not did:
                assert re.search("^MISSING  processes .*\n +effect  .*\n +fix     raise " + MENDS,
                                 check.stdout, re.M)
                assert complains(), said
            return did
        return judge

    def test_alone(self, judge, public_binary, folder):
        def works():
            report = execute(public_binary, "report", "--store", os.path.join(folder, "store"), "-f", "folded",
                             "-o", "-")
            return "spin" in report.stdout
        assert [judge(number, works) for number in (1, 2, 3)] == [False, True, True]

    def test_push(self, judge, backend):  # noqa: F811
        server = backend("pyroscope")
        works = [judge(number, lambda: server.taken, "--push", server.url()) for number in (1, 2, 3, 4)]
        assert works == [False, False, False, True]

    def test_push_to_a_host_name(self, judge, backend, folder):  # noqa: F811
        """The look-up takes one more thread."""
        server = backend("pyroscope")
        # A bare system has no /etc/hosts.
        etc = os.path.join(folder, "etc")
        subprocess.run(["cp", "-a", "/etc", etc], check=True)
        with open(os.path.join(etc, "hosts"), "w", encoding="ascii") as file:
            file.write("127.0.0.1 backend.test\n")
        prefix = with_shell("mount --bind %s /etc" % etc)
        url = server.url().replace("127.0.0.1", "backend.test")
        works = [judge(number, lambda: server.taken, "--push", url, prefix=prefix) for number in (4, 5)]
        assert works == [False, True]

    def test_names_of_pods(self, judge, backend, cluster, folder):  # noqa: F811
        api, server = cluster(), backend("pyroscope")
        credentials = shutil.copytree(api.credentials, os.path.join(folder, "credentials"))

        def works():
            return server.taken and any("watch" in asked.query for asked in api.asked)
        pods = ("--kubernetes", api.url, "--kubernetes-credentials", credentials)
        assert [judge(number, works, *pods, "--push", server.url()) for number in (5, 6)] == [False, True]
