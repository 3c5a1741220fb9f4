# SPDX-License-Identifier: BSD-2-Clause
"""Targets in containers, and the profiler in a container: which PIDs apply, and which files belong to a
process.

Every sample must have its whole stack, as outside containers.
"""

import glob
import os
import re
import stat
import subprocess

import pytest

import conftest
from conftest import PROGRAMS, missing
from containers import FIRST_UID, NAMESPACES, Container, Namespace, bind, innermost, numbers
from legal import BRIEF, runs_until
from pythons import RELEASE, find_pythons, musl_pythons, wants_all
from test_check import NO_PROGRAM, Checks

FAILED, USAGE, NOT_PYTHON, NOT_ALLOWED = 1, 2, 3, 4
BUSY = os.path.join(PROGRAMS, "busy.py")
THREADS = os.path.join(PROGRAMS, "numbered_threads.py")
# Removes the files that name a container.  This machine may be one, and the container's overlay shows its files.
WITHOUT_FILES = ["sh", "-c", 'rm -f /.dockerenv /run/.containerenv /run/systemd/container; exec "$@"', "sh"]
WAIT = ["/bin/sh", "-c", "echo ready; exec sleep infinity"]
THREAD = re.compile(r"thread \((\d+)\): (.*)")

# Sufficient for root's processes.  Other users' processes need CAP_DAC_READ_SEARCH, too.
CAPABILITIES = {"bpf", "perfmon", "sys_ptrace", "checkpoint_restore"}

# Prints the PID of its ended child, and does not reap it.
ZOMBIE = """
import os, time
child = os.fork() or os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print("ready %d" % child, flush=True)
time.sleep(1000)
"""

COPY = """
import os, shutil, sys
shutil.copy(sys.executable, "/tmp/worker")
os.execv("/tmp/worker", ["worker", "-c",
    "import os; os.unlink('/tmp/worker'); exec(open('/programs/busy.py').read())"])
"""


def other_distributions():
    """The newest Python of each other distribution."""
    return list({python.root: python for python in find_pythons()
                 if python.root and python.kind == RELEASE}.values())


def other_libcs():
    """Other distributions' Pythons, and musl's if wants_all()."""
    return other_distributions() + (musl_pythons() if wants_all() else [])


@pytest.fixture
def container(require, target, tmp_path):
    """container(ROOT, COMMAND, ...): a Container that is ready."""
    running = []

    def start(*arguments, **options):
        # The users of a user namespace must be able to enter the folders.
        for folder in (tmp_path, *tmp_path.parents):
            if str(folder) != "/" and not os.stat(str(folder)).st_mode & stat.S_ISVTX:
                os.chmod(str(folder), os.stat(str(folder)).st_mode | 0o055)
        folder = tmp_path / ("container-%d" % len(running))
        folder.mkdir()
        running.append(Container(require, folder, *arguments, **options))
        running[-1].start(target)
        return running[-1]

    yield start
    for started in running:
        started.end()


@pytest.fixture
def namespace(require, target):
    """namespace(WITHIN): a Namespace, perhaps within another's."""
    return lambda within=(): Namespace(require, target, within)


def record_some(profile, *arguments, **options):
    """A Run with samples, retried on a busy machine.  It has a fixed duration because the prefix commands
    do not forward signals."""
    for _ in range(40):
        run = profile("-d", 0.5, "-r", 499, "-p", *arguments, **options)
        if run.ledger["python"]:
            return run
    raise AssertionError("no samples: " + run.stderr)


@pytest.fixture
def expect_whole(profile):
    """expect_whole(PID, ARGUMENT..., prefix=...): a Run with samples, all with whole stacks."""
    def check(*arguments, **options):
        run = record_some(profile, *arguments, "-t", **options)
        assert run.count_name("spin") == run.ledger["python"], run.stderr
        assert run.ledger["truncated"] == run.ledger["no_python"] == 0
        return run
    return check


def threads(run):
    """{thread ID: name} of the threads in a profile."""
    labels = (THREAD.fullmatch(frames[0].label) for frames, _ in run.stacks)
    return {int(label.group(1)): label.group(2) for label in labels}


def said_threads(said, pid=None, level=0):
    """{thread ID: name} as numbered_threads.py printed it.  With PID, its thread IDs are converted to those
    of the PID namespace LEVEL levels below this machine's."""
    known = {}
    for path in glob.glob("/proc/%s/task/*" % pid):
        known[numbers(path)[-1]] = numbers(path)[level]
    return {known[tid] if pid else tid: name for name, tid in said.items()}


class TestTargets:
    @pytest.mark.pythons(which=other_libcs)
    def test_all_namespaces(self, python, container, expect_whole):
        """The target has another distribution's C library, an overlay root and a cgroup as in Kubernetes."""
        started = container(python.root or "/", [python.path, "/programs/numbered_threads.py"])
        with open("/proc/%d/cgroup" % started.pid, encoding="ascii") as cgroup:
            assert ":/kubepods/burstable/pod" in cgroup.read()
        for name in "pid", "mnt", "net", "ipc", "uts":
            own, other = (os.readlink("/proc/%s/ns/%s" % (pid, name))
                          for pid in ("self", started.pid))
            assert own != other
        found = threads(expect_whole(started.pid))
        assert found.items() <= said_threads(started.said, started.pid).items()

    @pytest.mark.pythons(which=lambda: other_distributions()[:1])
    def test_user_namespace(self, python, container, expect_whole):
        started = container(python.root, [python.path, "/programs/busy.py"],
                            namespaces=(*NAMESPACES, "user"))
        assert os.stat("/proc/%d" % started.pid).st_uid != 0
        expect_whole(started.pid)

    def test_perf_map(self, any_python, container, profile):
        """The perf map is in the container's /tmp, is named by its PID there and belongs to its user."""
        started = container("/", [any_python.path, "/programs/jit_code.py", "whole"],
                            namespaces=(*NAMESPACES, "user"))
        assert os.path.exists("/proc/%d/root/tmp/perf-1.map" % started.pid)
        runs_until(profile, lambda runs: any(frames[-1].label == "second (perf map)" for frames, _ in runs[-1].stacks),
                   "-p", started.pid, "-n", "-r", 999, cpu=BRIEF)

    @pytest.mark.pythons(which=lambda: other_distributions()[-1:])
    def test_deleted_executable(self, python, container, expect_whole):
        started = container(python.root, [python.path, "-c", COPY])
        assert os.readlink("/proc/%d/exe" % started.pid) == "/tmp/worker (deleted)"
        expect_whole(started.pid)

    @pytest.mark.pythons(which=lambda: other_distributions()[:1])
    def test_files_of_its_own_root(self, python, container, expect_whole, tmp_path):
        """Whether a folder is a package is looked up in the process's own root."""
        package = tmp_path / "application" / "package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        with open(BUSY, encoding="utf-8") as busy:
            (package / "part.py").write_text(busy.read())
        mount = dict(bind(str(package.parent)), destination="/application")
        command = "import sys; sys.path.insert(0, '/application'); import package.part"
        run = expect_whole(container(python.root, [python.path, "-c", command],
                                     mounts=[mount]).pid)
        assert {frame.file for frames, _ in run.stacks for frame in frames
                if frame.name == "spin"} == {"package/part.py"}

    @pytest.mark.parametrize("sandbox", [
        ["bwrap", "--die-with-parent", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc",
         "--dev", "/dev"],
        ["unshare", "--kill-child", "-U", "-r", "-m", "-n", "-p", "-f", "--mount-proc"],
    ], ids=lambda sandbox: sandbox[0])
    def test_sandbox(self, sandbox, any_python, target, expect_whole, require):
        command = [require(sandbox[0]), *sandbox[1:], any_python.path, BUSY]
        expect_whole(innermost(target.start(command).pid))


class TestIdentity:
    """The identity of a container's process, derived from its cgroup, which runc made."""

    @pytest.mark.parametrize("cgroup, runtime, has_pod", [
        ("/kubepods/burstable/pod{pod}/{id}", None, True),
        ("/kubepods.slice/kubepods-pod{slice}.slice/cri-containerd-{id}.scope", "containerd", True),
        ("/kubepods.slice/kubepods-pod{slice}.slice:cri-containerd:{id}", "containerd", True),
        ("/kubepods/pod{pod}/crio-{id}", "cri-o", True),
        ("/docker/{id}", "docker", False),
        ("/system.slice/docker-{id}.scope", "docker", False),
        ("/machine.slice/libpod-{id}.scope/container", "podman", False),
    ])
    def test_container(self, cgroup, runtime, has_pod, any_python, container, identity):
        started = container("/", [any_python.path, "/programs/idle.py"], cgroup=cgroup)
        found = identity(started.pid)
        assert found["cgroup"] == started.cgroup
        assert found["container_id"] == started.name
        assert found.get("container_runtime") == runtime
        assert found.get("pod_uid") == (started.pod if has_pod else None)
        assert found["short_name"] == "idle.py"
        assert "unit" not in found
        # The container's root has its own user database, so there is no name.
        assert (found["uid"], found["user"]) == ("0", "0")

    def test_user_namespace(self, any_python, container, identity):
        started = container("/", ["/usr/bin/env", any_python.path, "/programs/idle.py"],
                            namespaces=(*NAMESPACES, "user"))
        found = identity(started.pid)
        assert found["container_id"] == started.name
        assert (found["uid"], found["user"]) == (str(FIRST_UID), str(FIRST_UID))

    def test_within(self, any_python, container, identity, tool):
        """Inside a cgroup namespace the path is relative, so the container is unknown."""
        folder = bind(os.path.dirname(tool("identity_dump")))
        started = container("/", [any_python.path, "/programs/idle.py"], mounts=[folder])
        found = identity(1, prefix=started.enter)
        assert found["short_name"] == "idle.py"
        assert found["cgroup"] == "/"
        assert not found.keys() & {"container_id", "container_runtime", "pod_uid", "unit"}
        assert (found["uid"], found["user"]) == ("0", "root")


class TestAmongAll:
    """-a finds processes in containers with different Pythons, and tells them apart."""

    RATE = 199

    @pytest.fixture
    def two(self, container, any_python):
        others = other_distributions() or pytest.skip("no Python of another distribution")
        first = container("/", [any_python.path, "/programs/busy.py"])
        second = container(others[-1].root, [others[-1].path, "/programs/busy.py"],
                           cgroup="/docker/{id}")
        return first, second

    def processes(self, run):
        return {int(re.match(r"process (\d+):", frames[0].label)[1])
                for frames, _ in run.stacks if any(frame.name == "spin" for frame in frames)}

    def test_both(self, two, profile):
        found = self.processes(profile("-a", "-r", self.RATE, cpu=0.5, of=[one.pid for one in two]))
        assert {one.pid for one in two} <= found

    @pytest.mark.parametrize("rule", ["container", "cgroup", "exclude"])
    def test_chosen(self, two, profile, rule):
        first, second = two
        words = {"container": ("--container", first.name[:12]), "cgroup": ("--cgroup", first.cgroup),
                 "exclude": ("--exclude", "container=" + second.name)}[rule]
        found = self.processes(profile("-a", *words, "-r", self.RATE, cpu=0.5,
                                       of=[one.pid for one in two]))
        assert first.pid in found and second.pid not in found
        assert rule == "exclude" or found == {first.pid}

    def test_labels(self, two, profile, require, tmp_path):
        path = str(tmp_path / "all.pb.gz")
        run = profile.attempt("-a", "-q", "-o", path, cpu=1, of=[one.pid for one in two])
        assert run.status == 0, run.stderr
        tags = subprocess.run([require("go"), "tool", "pprof", "-tags", path], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True,
                              env=dict(os.environ, PPROF_TMPDIR=str(tmp_path))).stdout
        first, second = two
        for word in (first.name, second.name, first.cgroup, second.cgroup, first.pod):
            assert word in tags


class TestProfiler:
    """The profiler in a container, with only the capabilities that it needs."""

    SYSFS = {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]}
    NO_BTF = {"destination": "/sys/kernel/btf", "type": "tmpfs", "source": "tmpfs"}
    WITH_HOSTS = [name for name in NAMESPACES if name != "pid"]

    def inside(self, container, binary, tmp_path, command, namespaces, capabilities=CAPABILITIES,
               mounts=(SYSFS,), **options):
        folders = map(bind, {os.path.dirname(binary), str(tmp_path.parent)})
        return container("/", command, namespaces=namespaces, mounts=[*mounts, *folders],
                         capabilities=capabilities, **options)

    def test_with_the_hosts_processes(self, container, binary, tmp_path, any_python, target,
                                      expect_whole):
        """As with --pid=host, it profiles processes of the host and of another container."""
        on_host = target(any_python, BUSY)
        beside = container("/", [any_python.path, "/programs/busy.py"])
        inside = self.inside(container, binary, tmp_path, WAIT, self.WITH_HOSTS)
        for pid in on_host.pid, beside.pid:
            assert threads(expect_whole(pid, prefix=inside.enter)).keys() == {pid}

    def test_in_its_own_pid_namespace(self, container, binary, tmp_path, any_python, expect_whole):
        inside = self.inside(container, binary, tmp_path,
                             [any_python.path, "/programs/numbered_threads.py"], NAMESPACES)
        found = threads(expect_whole(1, prefix=inside.enter))
        assert found.items() <= said_threads(inside.said).items()

    def test_check(self, container, binary, tmp_path, any_python, target, expect_whole):
        """Check succeeds where profiling works."""
        inside = self.inside(container, binary, tmp_path, WAIT, self.WITH_HOSTS, conftest.CAPABILITIES)
        checks = Checks(binary, inside.enter).expect()
        assert checks.checks["container"]["found"].startswith("yes")
        assert checks.checks["PID namespace"]["found"] == "the host's"
        expect_whole(target(any_python, BUSY).pid, prefix=inside.enter)

    @pytest.mark.parametrize("without, cgroup, sign", [
        ({"pid"}, "/kubepods/burstable/pod{pod}/{id}", "cgroup namespace"),
        ({"pid", "cgroup"}, "/kubepods/burstable/pod{pod}/{id}", "cgroup name"),
        ({"cgroup"}, "/pybpfprof-{id}-test", "PID namespace"),
    ], ids=["cgroup-namespace", "cgroup", "pid-namespace"])
    def test_check_knows_a_container(self, without, cgroup, sign, container, binary, tmp_path):
        """Check recognizes a container even without a file from its runtime."""
        names = [name for name in NAMESPACES if name not in without]
        inside = self.inside(container, binary, tmp_path, WAIT, names, cgroup=cgroup)
        found = Checks(binary, inside.enter + WITHOUT_FILES).checks["container"]["found"]
        assert found == "yes: by its " + sign

    @pytest.mark.parametrize("lacking, mounts, unmet", [
        ("bpf", (SYSFS,), {"CAP_BPF", "ring buffer"} | NO_PROGRAM),
        ("perfmon", (SYSFS,), {"CAP_PERFMON", "perf events"} | NO_PROGRAM),
        ("checkpoint_restore", (SYSFS,), {"CAP_CHECKPOINT_RESTORE", "processes"}),
        ("", (SYSFS, NO_BTF), {"BTF"} | NO_PROGRAM),
        ("", (), {"BTF", "perf events"} | NO_PROGRAM),
    ], ids=["bpf", "perfmon", "checkpoint_restore", "btf", "sysfs"])
    def test_check_names_what_is_missing(self, lacking, mounts, unmet, container, binary, tmp_path,
                                         any_python, target, profile):
        """Profiling fails, too."""
        inside = self.inside(container, binary, tmp_path, WAIT, self.WITH_HOSTS,
                             conftest.CAPABILITIES - {lacking}, mounts)
        checks = Checks(binary, inside.enter).expect(unmet)
        assert not lacking or "--cap-add=" + lacking.upper() in checks.words("CAP_" + lacking.upper())
        run = profile.attempt("-p", target(any_python, BUSY).pid, "-d", 1, prefix=inside.enter)
        assert run.status == NOT_ALLOWED, run.stderr

    @pytest.mark.parametrize("lacking, status", [("sys_ptrace", NOT_ALLOWED), ("dac_read_search", 0)])
    def test_check_names_what_limits(self, lacking, status, container, binary, tmp_path, any_python, target,
                                     profile):
        """Only some processes can be profiled.  The container's root is the same user as the host's, but with
        fewer capabilities."""
        name = "CAP_" + lacking.upper()
        inside = self.inside(container, binary, tmp_path, WAIT, self.WITH_HOSTS,
                             conftest.CAPABILITIES - {lacking})
        Checks(binary, inside.enter).expect((), {name})
        run = profile.attempt("-p", target(any_python, BUSY).pid, "-d", 1, "-f", "folded", "-o", "-",
                              prefix=inside.enter)
        assert run.status == status, run.stderr
        assert status == 0 or "cannot be read" in run.stderr and name in run.stderr


def start_as(space, number, python):
    """Starts a Python with the PID NUMBER in the namespace.  Returns its PIDs."""
    choose = "echo %d >/proc/sys/kernel/ns_last_pid; %s %s; exit" % (number - 1, python.path, BUSY)
    found, _ = space.start("sh", "-c", choose)
    if found[-1] != number:
        missing("a process's number of one's choice")
    return found


class TestNumbers:
    """PIDs are those of the profiler's PID namespace, in options and in profiles."""

    def test_namespace_within(self, namespace, any_python, expect_whole):
        """The profiler in the middle namespace uses neither the host's PIDs nor the target's own."""
        middle = namespace()
        inner = namespace(middle.enter)
        (on_host, known, own), said = inner.start(any_python.path, THREADS)
        assert known != own
        found = threads(expect_whole(known, prefix=middle.enter))
        assert found.items() <= said_threads(said, on_host, level=1).items()

    def test_many_threads(self, namespace, any_python, profile):
        """BPF is given the threads' process by its PID on the host."""
        space = namespace()
        (_, here), _ = space.start(any_python.path, os.path.join(PROGRAMS, "many_threads.py"), 1500)
        assert record_some(profile, here, prefix=space.enter)

    def test_started_program(self, namespace, any_python, profile):
        """The profiled program ends by itself."""
        burn = os.path.join(PROGRAMS, "burn.py")
        run = profile("-r", 499, "-t", prefix=namespace().enter,
                      command=[any_python.path, burn, 1])
        assert run.ledger["python"] > 0
        assert all(tid < 100 for tid in threads(run))

    def test_a_pid_of_a_container(self, namespace, any_python, profile):
        """The user gives a PID from inside a container.  Here that PID is another process, not a Python."""
        outer = namespace()
        inner = namespace(outer.enter)
        known = numbers("/proc/%d" % inner.pid)[1]
        run = profile.attempt("-p", 1, "-d", 30, prefix=outer.enter)
        assert run.status == NOT_PYTHON
        assert "process 1 is not a Python" in run.stderr
        assert "PID 1 inside a container is process %d here" % known in run.stderr

    @pytest.mark.alone  # other containers would also have a process 2, and the message does not list all
    def test_a_pid_of_a_container_and_a_kernel_thread(self, namespace, any_python, profile):
        space = namespace()
        (known, number), _ = space.start(any_python.path, BUSY)
        if number != 2:
            missing("a container whose second process is a Python")
        run = profile.attempt("-p", number, "-d", 30)
        assert run.status == NOT_PYTHON and "process 2 is a kernel thread" in run.stderr
        assert re.search(r"PID 2 inside a container is process .*\b%d\b" % known, run.stderr)

    def test_a_pid_of_a_container_and_no_python(self, namespace, any_python, profile):
        """Here the PID belongs to no process, to a zombie or to a thread that is not the first."""
        outer = namespace()
        inner = namespace(outer.enter)
        _, tids = outer.start(any_python.path, THREADS)
        _, zombie = outer.start(any_python.path, "-c", ZOMBIE)
        for number, status, words in ((4321, FAILED, "there is no process 4321"),
                                      (zombie, NOT_PYTHON, "process %d is a zombie" % zombie),
                                      (tids["first"], USAGE, "is a thread of process")):
            known = start_as(inner, number, any_python)[1]
            run = profile.attempt("-p", number, "-d", 30, prefix=outer.enter)
            assert run.status == status and words in run.stderr, run.stderr
            assert "PID %d inside a container is process %d here" % (number, known) in run.stderr

    def test_a_pid_of_no_process(self, namespace, profile):
        run = profile.attempt("-p", 4321, "-d", 30, prefix=namespace().enter)
        assert run.status == FAILED
        assert len(run.stderr.splitlines()) == 1 and "no process 4321" in run.stderr

    def test_a_pid_of_two_processes(self, namespace, any_python, expect_whole):
        """One process has the PID here, and another one on the host."""
        space = namespace()
        (on_host, here), _ = space.start(any_python.path, BUSY)
        same = start_as(space, on_host, any_python)[-1]
        run = expect_whole(same, prefix=space.enter)
        assert threads(run).keys() == {same}
        assert "PID %d on the host is process %d here" % (on_host, here) in run.stderr

    def test_proc_of_another_namespace(self, profile, require):
        """/proc shows the host's PIDs, but the profiler is in another PID namespace."""
        run = profile.attempt("-p", 1, "-d", 30, prefix=[require("unshare"), "-p", "-f"])
        assert run.status == NOT_ALLOWED
        assert len(run.stderr.splitlines()) == 1 and "--mount-proc" in run.stderr


class TestHiddenProcesses:
    """/proc shows no other user's processes."""

    HIDE = 'mount -t proc -o hidepid=2 none /proc && exec "$@"'

    @pytest.fixture
    def attempt(self, any_python, target, require, public_binary, profile):
        """attempt(WORD...): the exit status, profile and messages of a profiler with the command prefix
        WORD..."""
        profile.binary = public_binary

        def run(*words, cpu=None):
            ended = profile.attempt("-p", target(any_python, BUSY).pid, "-f", "folded", "-o", "-", cwd="/tmp",
                                    prefix=[require("unshare"), "-m", "sh", "-c", self.HIDE, "sh", *words], cpu=cpu)
            return ended.status, ended.stdout.decode(), ended.stderr
        return run

    def nobody_with(self, require, capabilities):
        held = ",".join(["-all"] + ["+" + name for name in sorted(capabilities)])
        return [require("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups",
                "--inh-caps=" + held, "--ambient-caps=" + held, "--bounding-set=" + held]

    def test_with_capabilities(self, attempt, require):
        held = CAPABILITIES | {"dac_read_search"}
        status, stacks, error = attempt(*self.nobody_with(require, held), cpu=0.5)
        assert status == 0, error
        assert "spin (" in stacks

    def test_without(self, attempt, require):
        status, _, error = attempt(*self.nobody_with(require, CAPABILITIES - {"sys_ptrace"}))
        assert status == NOT_ALLOWED
        assert len(error.splitlines()) == 1 and "CAP_SYS_PTRACE" in error

    def test_in_a_user_namespace(self, attempt, require):
        """All capabilities are present in it, but do not count."""
        status, _, error = attempt(require("setpriv"), "--regid=65534", "--clear-groups",
                                   require("unshare"), "-U", "-r")
        assert status == NOT_ALLOWED
        assert len(error.splitlines()) == 1 and "user namespace" in error
