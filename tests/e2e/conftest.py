# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests share: the binary, the Pythons, targets and runs of the profiler.

A target is a program of tests/programs under a Python.  It prints "ready" once it is,
and is killed when its test ends.  A run of the profiler writes folded stacks and the
ledger.  The sums of every successful run are checked here.
"""

import contextlib
import glob
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from agents import agent, report, store  # noqa: F401 (fixtures)
from folded import parse_folded
from page.pages import (browser, change, change_page, machine, machine_page,  # noqa: F401 (fixtures)
                        make_page, native, native_page, page, plain_page)
from pythons import (OLDEST, TIER, few_of, own_and_fetched_pythons, own_pythons, pyenv_root,
                     wants_each_version)
from standins import build_standin

# The default, as in a terminal, even where the tests themselves run under nohup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Their failing assertions show values, too.  This must precede their first import.
pytest.register_assert_rewrite("embedding", "machines", "native_chains")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = os.path.join(ROOT, "tests", "programs")
PATIENCE = 120

# The profiler's priority.  Many tests depend on how soon it reacts, while parallel tests keep all CPUs busy.
NICENESS = -10

TICKS = os.sysconf("SC_CLK_TCK")

# The capabilities that profiling needs, including for other users' processes.
CAPABILITIES = {"bpf", "perfmon", "sys_ptrace", "checkpoint_restore", "dac_read_search"}


def pytest_configure(config):
    config.addinivalue_line("markers", "check: tier 1, `make check`: no root, no network")
    config.addinivalue_line("markers", "prove(part): tier 3, a part of `make prove`; every other test is "
                                       "tier 2, `make test`, which CI runs")
    config.addinivalue_line("markers", "pythons(which, since): on which Pythons it runs")
    config.addinivalue_line("markers", "proves(what): a column of tests/matrix.py's table")
    config.addinivalue_line("markers", "alone: other tests beside it would change what it looks at")


def pytest_generate_tests(metafunc):
    own = [name for marker in metafunc.definition.iter_markers("parametrize")
           for name in marker.args[0].split(",")]
    if "python" in metafunc.fixturenames and "python" not in own:
        marker = metafunc.definition.get_closest_marker("pythons")
        wanted = marker.kwargs if marker else {}
        pythons = [python for python in wanted.get("which", own_and_fetched_pythons)()
                   if python.version >= wanted.get("since", OLDEST)]
        pythons = pythons if wants_each_version() else few_of(pythons)
        metafunc.parametrize("python", pythons, ids=[python.name for python in pythons],
                             scope="session")


def side_by_side(item):
    """The group of tests that one xdist worker runs: tests of one Python share their profiles, tests of
    one file share its fixtures."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if "python" not in parameters or "kernels" in item.fixturenames:
        return item.module.__name__
    return parameters["python"].name


def runs_in(item, tier):
    """Whether a test belongs to TIER: check, test, or a part of `make prove`."""
    part = item.get_closest_marker("prove")
    own = part.args[0] if part else "check" if item.get_closest_marker("check") else "test"
    per_python = hasattr(item, "callspec") and "python" in item.callspec.params
    return own == tier or (tier == "interpreters" and own == "test" and per_python)


# Before pytest-xdist's hook, which reads the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if TIER:
        others = [item for item in items if not runs_in(item, TIER)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]
    for item in items:
        item.user_properties.append(("nodeid", item.nodeid.split("@")[0]))
        item.add_marker(pytest.mark.xdist_group(side_by_side(item)))
        marker = item.get_closest_marker("proves")
        if marker and "python" in item.callspec.params:
            item.user_properties += [("python", item.callspec.params["python"].name),
                                     ("proves", marker.args[0])]


@pytest.fixture
def figure(request):
    """figure(TEXT): the text of this test's cell in tests/matrix.py's table."""
    return lambda text: request.node.user_properties.append(("figure", text))


@pytest.fixture
def measured(request):
    """measured(WHAT, FOUND, WANTED=""): a row in the report of this part of `make prove`.  The test asserts
    afterwards that FOUND suffices.  A test that fails twice is reported as out of bounds."""
    def add(what, found, wanted=""):
        request.node.user_properties.append(("measured", json.dumps([what, str(found), str(wanted)])))
    return add


@pytest.fixture
def sampled_shares(request):
    """sampled_shares(COUNTS, SHARES): the samples of each kind, and each kind's true share.  The part's
    report combines them in one chi-square, which is out of bounds at p < 1e-6."""
    found = [0, 0]

    def add(counts, shares):
        total, whole = sum(counts), sum(shares)
        expected = [total * share / whole for share in shares]
        assert min(expected) >= 5, "too few samples for a chi-square: %s" % expected
        found[0] += sum((count - mean) ** 2 / mean for count, mean in zip(counts, expected))
        found[1] += len(counts) - 1
        properties = request.node.user_properties
        properties[:] = [pair for pair in properties if pair[0] != "chi_square"]
        properties.append(("chi_square", "%r %d" % tuple(found)))
    return add


def missing(what):
    """Skips the test; fails it in CI, where nothing may be missing."""
    if os.environ.get("CI") == "true":
        pytest.fail("this machine can provide %s, but it is missing" % what)
    pytest.skip("no %s here" % what)


def missing_without_pyenv(what):
    """As missing(), for Pythons that only pyenv provides."""
    if not os.path.isdir(os.path.join(pyenv_root(), "versions")):
        pytest.skip("no pyenv, which alone has a " + what)
    missing(what)


@pytest.fixture(scope="session")
def require():
    """require(TOOL): the tool's path."""
    def find(tool):
        path = shutil.which(tool, path=os.environ["PATH"] + ":/usr/local/go/bin:/usr/sbin:/sbin")
        return path or missing(tool)
    return find


@pytest.fixture(scope="session")
def tool():
    """tool(NAME): the path of a test program in C."""
    def find(name):
        path = os.path.join(ROOT, os.environ.get("OUTPUT", ".output"), name)
        assert os.access(path, os.X_OK), "%s is not built: run make unit-tests" % path
        return path
    return find


@pytest.fixture
def identity(tool):
    """identity(PID): {name: value} of the process's identity, as the profiler derives it."""
    def find(pid, prefix=()):
        output = subprocess.check_output([*prefix, tool("identity_dump"), str(pid)])
        return dict(text.split("=", 1) for text in output.decode("utf-8").split("\0")[:-1])
    return find


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("PYBPFPROF", os.path.join(ROOT, ".output", "pybpfprof"))
    assert os.access(path, os.X_OK), "%s is not built: run make" % path
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def public_binary(binary):
    """A copy that every user can run.  Every run of pytest makes its own folders private, so it is elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield shutil.copy(binary, folder)


def as_nobody(capabilities, uid=65534):
    """A command's prefix that runs it as nobody, or as the user with that number, with only these
    capabilities."""
    held = ",".join(["-all"] + ["+" + name for name in sorted(capabilities)])
    return ["setpriv", "--reuid=%d" % uid, "--regid=65534", "--clear-groups", "--inh-caps=" + held,
            "--ambient-caps=" + held, "--bounding-set=" + held]


@pytest.fixture
def hiding_symbols(tmp_path):
    """A command's prefix that hides the addresses of kernel symbols, as kptr_restrict does."""
    zeros = tmp_path / "kallsyms"
    zeros.write_text("0000000000000000 T vfs_read\n0000000000000000 t read_nothing\n")
    return ["unshare", "--mount", "sh", "-e", "-c", 'mount --bind %s /proc/kallsyms; exec "$@"' % zeros, "sh"]


@pytest.fixture(scope="session")
def any_python():
    """One Python of this machine, for tests that do not depend on the version."""
    pythons = own_pythons()
    assert pythons, "no Python here"
    return next((python for python in pythons if python.name.endswith("-system")), pythons[-1])


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    """standin(BUILD): the path of the stand-in interpreter for that build."""
    built = {}

    def build(which):
        if which not in built:
            built[which] = build_standin(which, str(tmp_path_factory.mktemp("standin")))
        return built[which] or missing("headers for a stand-in of " + which.name)
    return build


class Target:
    """A running program that has printed "ready"."""

    def __init__(self, command, **options):
        # PYTHONUNBUFFERED because print in 2.7 has no `flush`.
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONUTF8="1",
                           PYTHONUNBUFFERED="1")
        environment.update(options.pop("environment", {}))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment, **options)
        line = self.process.stdout.readline().decode("utf-8")
        if not line.startswith("ready"):
            self.end()
            raise AssertionError("%s did not start" % command)
        self.said = json.loads(line[5:].strip() or "null")

    @property
    def pid(self):
        return self.process.pid

    def go(self):
        """Sends the line that the program is waiting for."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def cpu_seconds(self):
        """CPU time of all its live threads, as counted by the scheduler."""
        nanoseconds = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.pid):
            with open(path, encoding="ascii") as schedstat:
                nanoseconds += int(schedstat.read().split()[0])
        return nanoseconds / 1e9

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Targets:
    """Starts targets and ends them all."""

    def __init__(self):
        self.running = []

    def __call__(self, python, program, *arguments, **options):
        path = program if os.path.isabs(program) else os.path.join(PROGRAMS, program)
        return self.start([*getattr(python, "command", [python]), path, *map(str, arguments)], **options)

    def start(self, command, **options):
        target = Target(command, **options)
        self.running.append(target)
        return target

    def end(self):
        while self.running:
            self.running.pop().end()


@pytest.fixture
def target():
    """target(PYTHON, PROGRAM, ARGUMENT...): a Target, ready."""
    targets = Targets()
    yield targets
    targets.end()


@pytest.fixture(scope="session")
def session_target():
    """As `target`, for targets that several tests share."""
    targets = Targets()
    yield targets
    targets.end()


def children_of(pid):
    """The child processes of PID in order of their start; empty if it has ended."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as children:
            return [int(child) for child in children.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descriptors(pid):
    """The fdinfo of each open file of a process, as {"prog_id": "1", ...}.  It may close some meanwhile."""
    for name in os.listdir("/proc/%d/fdinfo" % pid):
        with contextlib.suppress(FileNotFoundError), \
                open("/proc/%d/fdinfo/%s" % (pid, name), encoding="ascii") as file:
            yield dict(line.strip().split(":\t", 1) for line in file if ":\t" in line)


def cpu_seconds(pid):
    """CPU time of all its threads, including ended ones; None if the process has ended."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
            words = stat.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The first thread may be a zombie while others still run.
    if words[0] in "ZX" and int(words[17]) < 2:
        return None
    return (int(words[11]) + int(words[12])) / TICKS


def wait_for(condition, what="what the test waits for"):
    """Calls CONDITION every 20 ms for up to two minutes, and returns its first true result."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, "in vain: " + what
        time.sleep(0.02)


def remove_group(folder):
    """Removes a control group once its last process has ended."""
    def is_removed():
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        return not os.path.exists(folder)
    wait_for(is_removed, "the end of all processes in " + folder)


def wait_used(seconds, *pids):
    """Returns once each process has used SECONDS more of CPU time, or has ended.  On a busy machine,
    sleeping would not guarantee that they run at all."""
    ends = {pid: (cpu_seconds(pid) or 0) + seconds for pid in pids}
    deadline = time.monotonic() + PATIENCE
    while ends:
        used = {pid: cpu_seconds(pid) for pid in ends}
        ends = {pid: end for pid, end in ends.items() if used[pid] is not None and used[pid] < end}
        assert time.monotonic() < deadline, used
        time.sleep(0.01)


def stolen_seconds():
    """CPU time that the hypervisor gave to other machines.  Ticks of the CPU clock then come late, and the
    clock counts that time for the thread that runs next.  Thread clocks do not."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / TICKS


class Run:
    """One run of the profiler and its output."""

    def __init__(self, command, folder, cpu=None, of=(), **options):
        """With CPU, the run ends once each process in OF has used that much CPU time under sampling."""
        self.output = os.path.join(folder, "profile.folded")
        self.stats = os.path.join(folder, "stats.json")
        self.says_to = tempfile.TemporaryFile()
        self.cpu, self.of = cpu, of
        self.started = time.monotonic()
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen(command, stderr=self.says_to, **options)
        try:
            os.setpriority(os.PRIO_PROCESS, self.pid, NICENESS)
        except PermissionError:
            pass  # not permitted in some containers

    @property
    def pid(self):
        return self.process.pid

    def is_sampling(self, pid=None):
        """Whether it has dropped its privileges, which it does once it samples.  PID is the profiler's, if
        the command that was started is not the profiler itself."""
        try:
            with open("/proc/%d/status" % (pid or self.pid), encoding="utf-8") as file:
                return "NoNewPrivs:\t1" in file.read()
        except (FileNotFoundError, ProcessLookupError):
            return False

    def said(self):
        """Its messages so far."""
        number = self.says_to.fileno()
        return os.pread(number, os.fstat(number).st_size, 0).decode("utf-8")

    def wait_sampling(self):
        """Returns once it samples."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            if self.is_sampling():
                return
            time.sleep(0.01)
        self.process.kill()
        self.process.wait()
        raise AssertionError("never began to sample: " + self.said())

    def wait_said(self, text):
        """Returns once its messages contain TEXT."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.said():
            assert time.monotonic() < deadline and self.process.poll() is None, self.said()
            time.sleep(0.02)

    def interrupt(self):
        """Ends it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)
        return self

    def finish(self):
        """Waits for its end, and keeps its status, messages and output in attributes."""
        try:
            if self.cpu:
                self.wait_sampling()
                wait_used(self.cpu, *self.of)
                self.interrupt()
            stdout, _ = self.process.communicate(timeout=PATIENCE)
        except (subprocess.TimeoutExpired, AssertionError):
            self.process.kill()
            raise
        self.seconds = time.monotonic() - self.started
        self.status = self.process.returncode
        self.stdout = stdout
        self.stderr = self.said()
        self.stacks = self.ledger = None
        return self

    def load(self, status=0):
        """Waits, checks the exit status, reads and checks the profile and the ledger.  STATUS is None where
        there may be no samples: both statuses are then right."""
        self.finish()
        assert self.status == status or status is None and self.status in (0, 5), self.stderr
        assert "do not add up" not in self.stderr
        with open(self.stats, encoding="utf-8") as stats:
            self.ledger = json.load(stats)
        check_ledger(self.ledger)
        with open(self.output, encoding="utf-8", newline="\n") as output:
            self.stacks = parse_folded(output.read())
        assert self.samples in shown(self.ledger)
        assert (self.status == 5) == (self.samples == 0), self.stderr
        return self

    @property
    def samples(self):
        return sum(count for _, count in self.stacks)

    def count(self, wanted):
        """The number of samples whose stack has a frame for which WANTED(frame) is true."""
        return sum(count for frames, count in self.stacks if any(map(wanted, frames)))

    def count_name(self, name):
        return self.count(lambda frame: frame.name == name)


def whole_at_least(samples):
    """How many of SAMPLES Python samples must have a whole stack: 99.9 %, minus a statistical margin.
    check_ledger() checks that the ledger has a reason for each of the others."""
    others = 0.001 * samples
    return samples - others - 4 * math.sqrt(others)


def shown(ledger):
    """The allowed sums of a profile's stacks: the first event's samples, or the value of one event or of all."""
    values = [event["value"] for event in ledger.get("per_event", {}).values()]
    return [ledger["samples"], *values, sum(values)]


def check_ledger(ledger):
    """Checks the sums that hold in every ledger."""
    assert ledger["events"] == ledger["samples"] + ledger["without_gil"] + ledger["lost"], ledger
    explained = ledger["python"] + ledger["no_python"] + sum(ledger["errors"].values())
    assert ledger["samples"] == explained, ledger
    assert ledger["truncated"] <= ledger["python"], ledger


class Profiler:
    """Starts runs of the profiler, and kills those that a failed test left behind."""

    def __init__(self, binary, folders):
        self.binary = binary
        self.folders = folders
        self.running = []

    def start(self, *arguments, command=(), prefix=(), files=True, cpu=None, of=(), **options):
        """Starts it.  COMMAND follows --; PREFIX precedes everything.  FILES adds -o and --stats.  CPU
        replaces -d: the run ends once each process in OF, by default those given to -p, has used that
        much CPU time."""
        folder = str(self.folders.mktemp("run"))
        words = [*prefix, self.binary, *arguments]
        # The profiler saves output that it could not write in TMPDIR.
        options.setdefault("env", dict(os.environ, TMPDIR=folder))
        if files:
            words += ["-f", "folded", "-o", os.path.join(folder, "profile.folded"),
                      "--stats", os.path.join(folder, "stats.json")]
        if command:
            words += ["--", *command]
        if cpu and not of:
            of = [int(pid) for word, which in zip(arguments, arguments[1:]) if word == "-p"
                  for pid in str(which).split(",")]
        run = Run([str(word) for word in words], folder, cpu, of, **options)
        self.running.append(run)
        return run

    def __call__(self, *arguments, **options):
        """Runs it to its end, and checks that it succeeded."""
        return self.start(*arguments, **options).load()

    def attempt(self, *arguments, **options):
        """Runs it to its end with only these arguments; it may fail."""
        return self.start(*arguments, files=False, **options).finish()

    def end(self):
        for run in self.running:
            if run.process.poll() is None:
                run.process.kill()
                run.process.wait()


@pytest.fixture
def profile(binary, tmp_path_factory):
    """profile(ARGUMENT...): a finished, checked Run; profile.start and profile.attempt for more."""
    profiler = Profiler(binary, tmp_path_factory)
    yield profiler
    profiler.end()


@pytest.fixture(scope="session")
def session_profile(binary, tmp_path_factory):
    """As `profile`, for runs that several tests share."""
    profiler = Profiler(binary, tmp_path_factory)
    yield profiler
    profiler.end()
