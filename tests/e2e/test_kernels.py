# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernels, from the oldest that is supported to the newest, each in a machine of its own;
and two for aarch64, with pages of 4 and of 16 KiB.

All Pythons run three programs there, which one profile has all of; machine_jobs.py says what else is done
there, and tests/kernels/ makes it happen.
"""

import concurrent.futures
import contextlib
import functools
import json
import math
import os
import re
import signal
import subprocess
import threading

import pytest

from conftest import ROOT, check_ledger, missing, parse_folded, whole_at_least
from legal import DeepLegal
from machine_jobs import (
    CAP_BPF, CHANGING_SECONDS, CONFIG, CONFIG_THERE, CONTAINERS, DEPTH, GROUPS, HOLDERS, NEWER,
    NEWER_COMPILER, NEWEST, NUMBER, OLDEST, POD, PRELOADED, RATE, SCOPES, TO_READ, WITH_CYCLES, Kernel,
    make_containers, make_jobs, stacks_of, what_is_missing)

import debian_kernels  # its folder is in the path by now: machine_jobs.py
import image
import machine
import machine_containers as contained

pytestmark = pytest.mark.timeout(1800)

AT_ONCE = 2
FUNCTIONS = ("alpha", "beta", "gamma", "delta", "epsilon")
BASELINE = os.path.join(ROOT, "tests", "kernels", "verifier_cost.json")
MOST_OF_BASELINE = 1.10
VERIFIED = re.compile(r"^verifier: (\w+) (\d+)$", re.MULTILINE)
# By when after its exec a program whose file is known is walked: what comes before is counted, but has no
# stack.
KNOWN_WITHIN_S = 0.02
# Where no function can be traced, it is said with -v.
ASKED = "does not report file mappings"
KEPT = re.compile(r"^CapPrm:\t(\w+)$", re.MULTILINE)

each_python = pytest.mark.parametrize("kernel,python", [
    pytest.param(name, python, id="%s-%s" % (name, python.name))
    for name, described in machine.MACHINES.items() for python in described.contents.pythons()
], indirect=["kernel"], scope="session")

each_contained_python = pytest.mark.parametrize("kernel,python", [
    pytest.param(name, python, id="%s-%s" % (name, python.name))
    for name, described in machine.MACHINES.items() for python in contained.pythons_within(described.contents)
], indirect=["kernel"], scope="session")

with_cycles = pytest.mark.parametrize("kernel", [
    name for name, described in machine.MACHINES.items()
    if described.contents.ARCHITECTURE == WITH_CYCLES], indirect=True, scope="session")


@pytest.fixture(scope="session")
def initrd(binary, tmp_path_factory):
    """initrd(CONTENTS): the image of what machines have (own.py, foreign.py), made once."""
    @functools.lru_cache(maxsize=None)
    def make(contents):
        output = os.path.join(os.path.dirname(binary), contents.OUTPUT)
        has_newer = os.path.exists(os.path.join(output, NEWER))
        files = {"/usr/bin/pybpfprof": os.path.join(output, "pybpfprof"), CONFIG_THERE: CONFIG,
                 **{"/" + name: os.path.join(output, name) for name in (*PRELOADED, *[NEWER] * has_newer)}}
        containers, of_them = make_containers(contents)
        texts = {"/jobs.json": json.dumps(make_jobs(contents, has_newer)),
                 **contained.files([*containers, contained.with_profiler(of_them)])}
        return image.build(str(tmp_path_factory.mktemp("image")), contents, files, texts)
    return make


@pytest.fixture(scope="session")
def kernels(request, binary, initrd):
    """{name: the Kernel to come} of all that are selected and can be had, some at once; the newest, which has
    most to do, first."""
    names = {item.callspec.params["kernel"] for item in request.session.items
             if "kernels" in item.fixturenames}
    machines = {name: described for name, described in machine.MACHINES.items()
                if name in names and not what_is_missing(described, binary)}
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    yield {name: pool.submit(Kernel, described, initrd(described.contents))
           for name, described in sorted(machines.items(), key=lambda item: item[0] != NEWEST)}
    pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def fetching(name):
    """A kernel, which may not be there to be had."""
    try:
        yield
    except debian_kernels.debian.Unreachable as reason:
        pytest.skip("kernel %s cannot be fetched: %s" % (name, reason))
    except debian_kernels.debian.Failure as reason:
        missing("kernel %s (%s)" % (name, reason))


@pytest.fixture(scope="session", params=machine.MACHINES)
def kernel(request, binary, kernels):
    if request.param not in kernels:
        missing(what_is_missing(machine.MACHINES[request.param], binary))
    with fetching(request.param):
        return kernels[request.param].result()


@pytest.mark.parametrize("contents,wanted", [
    pytest.param(contents, wanted, id="%s-%d.%d" % (contents.__name__, *wanted))
    for contents in dict.fromkeys(described.contents for described in machine.MACHINES.values())
    for wanted in contents.WANTED])
def test_python_is_there(contents, wanted):
    if not any(python.version[:2] == wanted for python in contents.pythons()):
        pytest.skip("no Python %d.%d here" % wanted)


def test_ledger(kernel, request):
    request.node.user_properties.append(("machine", kernel.time))  # for tests/run
    ledger = kernel.ledger()
    check_ledger(ledger)
    assert ledger["lost"] == ledger["truncated"] == 0
    # Some threads have not run any Python yet: in 2.7 a new one, on aarch64 also a process's first.
    assert ledger["python"] + ledger["no_python"] >= whole_at_least(ledger["samples"]), ledger
    assert ledger["python"] >= 0.99 * ledger["samples"] > 1000
    counted = sum(count for _, count in parse_folded(kernel.profile["profile"]))
    assert counted == ledger["samples"]


@pytest.mark.proves("kernels")
@each_python
def test_shares(kernel, python, figure):
    """Chance alone puts one of the 100 shares here outside 5 standard errors in 20,000 runs."""
    stacks, used = kernel.stacks(python, "shares")
    counts = [sum(count for frames, count in stacks
                  if any(frame.name == name for frame in frames)) for name in FUNCTIONS]
    total = sum(counts)
    assert total > 100
    for name, count, seconds in zip(FUNCTIONS, counts, used):
        share = seconds / sum(used)
        error = math.sqrt(share * (1 - share) / total)
        assert abs(count / total - share) <= 5 * error, (name, count / total, share)
    figure(kernel.release.partition("-")[0])


# What comes before a Python has begun, where it is one of all that are profiled.
BEGINNINGS = "[Python is starting or has ended]", "[process not identified yet]"


# What is said where the caller could not be told; and the first kernel that tells the registers of what
# waits for it, on a page of its stack that it has not touched before, for one.
NOT_BEGUN, TELLS_REGISTERS, UNTOLD_PART = "[call not begun yet]", [5, 15], 0.1


def check_legal(stacks, python, kernel):
    """Of a run of deep.py: none was never there, nearly all are whole once it has begun."""
    legal = DeepLegal(python, roots=("<module>", "work"))
    wrong, lacking = {}, {}
    whole = 0
    for frames, count in stacks:
        if frames[0].label in BEGINNINGS:
            continue
        if frames[0].file is None:
            lacking[frames[0].label] = lacking.get(frames[0].label, 0) + count
            continue
        whole += count
        reason = legal.why_not(frames)
        if reason:
            wrong[reason] = wrong.get(reason, 0) + count
    assert wrong == {}
    # With one CPU and 2.7's lock, a new thread may wait long before it first runs any Python.
    wanted = 0.9 if python.version < (3,) else 0.98
    if version(kernel.release) < TELLS_REGISTERS and lacking.get(NOT_BEGUN, 0) < UNTOLD_PART * whole:
        lacking.pop(NOT_BEGUN, None)
    assert whole >= wanted * (whole + sum(lacking.values())) > 50, lacking


@each_python
def test_no_stack_that_never_was(kernel, python):
    check_legal(kernel.stacks(python, "deep")[0], python, kernel)


@each_python
def test_1000_frames_are_whole(kernel, python):
    stacks, _ = kernel.stacks(python, "depth")
    # In the first second each frame is wholly identified in each sample, which an emulator takes its time
    # for.
    assert sum(count for _, count in stacks) >= 3
    for frames, _ in stacks:
        own = [frame.name for frame in frames if frame.file.endswith("depth.py")]
        assert own == ["descend"] * DEPTH + ["bottom"]
        assert frames[0].short.lstrip("_") == "bootstrap"


def test_in_a_pid_namespace(kernel):
    """The profiler, its thread that reads processes, and what it starts have the first numbers of a
    namespace of their own."""
    stacks = parse_folded(kernel.succeeded(kernel.inner)["profile"])
    assert sum(count for frames, count in stacks
               if any(frame.name == "spin" for frame in frames)) > 20
    assert {frames[0].label.split(":")[0] for frames, _ in stacks} == {"thread (3)"}


def test_program_from_its_start(kernel):
    """It is looked at before it has loaded all that a Python needs."""
    check_ledger(json.loads(kernel.succeeded(kernel.started)["stats"]))
    stacks = parse_folded(kernel.started["profile"])
    assert sum(count for frames, count in stacks
               if [frame.name for frame in frames] == ["<module>", "work"]) > 100


def without_mappings(kernel, is_refused=False):
    """What of this `check` does not find OK: that is so where `record` does without the program."""
    has_program = "verifier: follow_mapping " in kernel.succeeded(kernel.every)["output"]
    return {"mappings": "LIMITED"} if is_refused or not has_program else {}


def test_check_in_a_control_group(kernel):
    result = kernel.succeeded(kernel.limited)
    checks = {check["name"]: check for check in json.loads(result["output"])["checks"]}
    assert {name for name, check in checks.items() if check["verdict"] != "OK"} == \
        {"memory", *without_mappings(kernel)}
    assert "64 MiB" in json.dumps(checks["memory"])


def check_that_cpu_1_is_missed(result):
    """It came while the others were sampled."""
    assert json.loads(result["stats"])["cpus_not_sampled"] == 1
    told = [line for line in result["output"].splitlines() if "went online" in line]
    assert len(told) == 1 and "CPU 1 " in told[0]


def test_while_cpus_and_the_clock_change(kernel):
    """The time that it takes is no other; and what is not sampled is told, once."""
    result = kernel.succeeded(kernel.changing)
    ledger = json.loads(result["stats"])
    check_ledger(ledger)
    assert CHANGING_SECONDS - 0.1 < ledger["duration_s"] < CHANGING_SECONDS + 2
    assert ledger["samples"] > 10
    check_that_cpu_1_is_missed(result)


def test_while_a_cpu_goes_and_comes_back(kernel):
    """It is not sampled from then on, which is told, once; the others are."""
    result = kernel.succeeded(kernel.leaving)
    check_ledger(json.loads(result["stats"]))
    assert any(frame.name == "leaf" for frames, _ in parse_folded(result["profile"]) for frame in frames)
    check_that_cpu_1_is_missed(result)


def has_name(stacks, name):
    return any(frame.name == name for frames, _ in stacks for frame in frames)


def version(text):
    return [int(number) for number in re.findall(r"\d+", text)[:2]]


def not_ok(result):
    """What `check`, which must find that something is missing, does not find OK."""
    assert result["status"] == 4, result["output"]
    return {check["name"]: check["verdict"] for check in json.loads(result["output"])["checks"]
            if check["verdict"] != "OK"}


def test_check_with_fewest_privileges(kernel):
    """Debian's kernels have a value of perf_event_paranoid that takes CAP_SYS_ADMIN."""
    assert kernel.check, kernel.console[:2000]
    missing = {"perf_event_paranoid", "perf events", "sample"}
    if version(kernel.release) < [5, 11]:
        missing |= {"locked memory", "BPF program"}
    assert not_ok(kernel.check) == dict(dict.fromkeys(missing, "MISSING"),
                                        **without_mappings(kernel, "BPF program" in missing))


def check_fewest(kernel, result, samples):
    """More than so many samples came, and no more is held than is needed to the end."""
    stacks = parse_folded(kernel.succeeded(result)["profile"])
    assert sum(count for frames, count in stacks
               if any(frame.name == "spin" for frame in frames)) > samples, result["output"]
    kept = TO_READ + [CAP_BPF] * (version(kernel.release) < [5, 19])
    assert int(KEPT.search(result["output"]).group(1), 16) == sum(1 << bit for bit in kept)


def test_fewest_privileges(kernel):
    """They are else enough, before 5.11 with CAP_SYS_RESOURCE, and what is still needed later is kept:
    CAP_BPF by old kernels alone; also where /proc hides other users' processes."""
    check_fewest(kernel, kernel.nobody, 10)
    assert "hidepid=" in kernel.nobody["output"]


def test_service(kernel):
    """The agent as Debian's package has it started, with perf_event_paranoid as Debian's kernels have it:
    with CAP_SYS_ADMIN, which it gives up.  Before 5.11 CAP_SYS_RESOURCE is in the place of the package's
    limit of locked memory."""
    check_fewest(kernel, kernel.service, 3)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kernel", [NEWEST], indirect=True)
def test_ptrace_scope(kernel, scope):
    """Yama's own: at 0 alone one's own processes take no CAP_SYS_PTRACE, which is said; and it passes the
    others.  At 1 what `check` tries is read all the same, for it has started that itself."""
    assert all(kernel.yama[scope]), kernel.console[:2000]
    alone, check, *passing = kernel.yama[scope]
    found = {told["name"]: told["found"] for told in json.loads(check["output"])["checks"]}
    assert found["ptrace_scope"] == "%d; CAP_SYS_PTRACE overrides it" % scope
    if scope:
        assert alone["status"] == 4 and "(missing CAP_SYS_PTRACE): run as root " in alone["output"]
        assert alone["profile"] is None
        assert not_ok(check) == dict({"CAP_SYS_PTRACE": "MISSING"}, **without_mappings(kernel),
                                     **{"processes": "MISSING"} if scope > 1 else {})
    else:
        assert has_name(parse_folded(kernel.succeeded(alone)["profile"]), "spin")
        limited = json.loads(kernel.succeeded(check)["output"])["checks"]
        assert {told["name"]: told["verdict"] for told in limited if told["verdict"] != "OK"} == \
            dict({"CAP_SYS_PTRACE": "LIMITED"}, **without_mappings(kernel))
    assert len(passing) == bool(scope)
    for result in passing:
        for part in kernel.succeeded(result)["programs"]:
            assert has_name(stacks_of(result, part), "spin"), result["output"]


@pytest.mark.parametrize("kernel", [NEWEST], indirect=True)
def test_ptrace_scope_that_nothing_passes(kernel):
    """Not even root, who is told so in place of a profile without a stack."""
    assert kernel.no_tracing, kernel.console[:2000]
    assert kernel.no_tracing["status"] == 4, kernel.no_tracing["output"]
    assert "ptrace_scope is 3" in kernel.no_tracing["output"]
    assert kernel.no_tracing["profile"] is None


@with_cycles
def test_hardware_event(kernel):
    """The same, when a counter of the processor that overflows runs the BPF program."""
    result = kernel.succeeded(kernel.by_cycles)
    assert "cycles: CPU 0\n" in result["output"]
    ledger = json.loads(result["stats"])
    check_ledger(ledger)
    assert ledger["lost"] == 0
    assert ledger["python"] >= 0.98 * ledger["samples"] > 1000, ledger
    for python, part in zip(kernel.pythons, result["programs"]):
        check_legal(stacks_of(result, part), python, kernel)


@pytest.mark.parametrize("kernel", [OLDEST], indirect=True)
def test_profiler_that_does_not_begin(kernel):
    """Who waits for it to sample does so no longer, and what it said is there to be read."""
    assert kernel.not_begun["status"] == 2
    assert "--wrong" in kernel.not_begun["output"] and "of what" not in kernel.not_begun["output"]


@pytest.mark.parametrize("kernel", [OLDEST], indirect=True)
def test_check_under_lockdown(kernel):
    """And with the JIT off."""
    assert kernel.locked, kernel.console[:2000]
    missing = dict.fromkeys(("lockdown", "BPF program", "sample"), "MISSING")
    assert not_ok(kernel.locked) == dict(missing, mappings="LIMITED", **{"BPF JIT": "LIMITED"})


def check_cost(kernel, compiler, output):
    """Instructions that the verifier looks at, of the million that it will; without a baseline for
    a kernel's version, that of the last one before; without one for the compiler, nothing is checked,
    which is no success."""
    found = {name: int(count) for name, count in VERIFIED.findall(output)}
    architecture = kernel.machine.architecture.__name__
    with open(BASELINE, encoding="utf-8") as file:
        baselines = json.load(file).get(compiler, {}).get(architecture)
    assert baselines, "%s has no numbers of %s: add to them, for %s, \"%s\": %s" % (
        os.path.relpath(BASELINE, ROOT), compiler, architecture, ".".join(map(str, version(kernel.release))),
        json.dumps(found))
    known = max((key for key in baselines if version(key) <= version(kernel.release)), key=version)
    print("\nverifier, %s, %s: %s instructions; %s: %s"
          % (kernel.release, compiler, found, known, baselines[known]))
    assert found.keys() == baselines[known].keys()
    for name, count in found.items():
        assert count <= MOST_OF_BASELINE * baselines[known][name], name


def test_verifier_cost(kernel, require, capsys):
    told = subprocess.run([require("clang"), "--version"], stdout=subprocess.PIPE, universal_newlines=True,
                          check=True).stdout
    compiler = re.search(r"clang version \d+", told).group().replace(" version", "")
    output = "".join(kernel.succeeded(result)["output"] for result in (kernel.inner, kernel.every))
    with capsys.disabled():
        check_cost(kernel, compiler, output)


def test_verifier_cost_of_a_newer_compiler(kernel, binary, capsys):
    """Which knows, and so leaves out, more than an old kernel's verifier knows."""
    if not os.path.exists(os.path.join(os.path.dirname(binary), kernel.machine.contents.OUTPUT, NEWER)):
        missing(NEWER_COMPILER.replace(" ", "-"))
    with capsys.disabled():
        check_cost(kernel, NEWER_COMPILER, kernel.succeeded(kernel.chosen)["output"])


def test_every_python(kernel):
    """Those that come while all are profiled, one after the other."""
    result = kernel.succeeded(kernel.every)
    check_ledger(json.loads(result["stats"]))
    at_work = {frames[0].label for frames, _ in parse_folded(result["profile"])
               if any(frame.name == "work" for frame in frames)}
    assert len(at_work) == 3, result["profile"][:2000] + result["output"]
    assert all(label.startswith("process ") for label in at_work)
    if kernel.machine.architecture.__name__ == "x86_64":
        assert ASKED not in result["output"]


def test_of_a_container(kernel):
    """By its control group, where there is no hierarchy but that of version 2: the one that was asked for,
    with its pod and its number here, and neither the other one of that pod nor what is in none."""
    result = kernel.succeeded(kernel.chosen)
    check_ledger(json.loads(result["stats"]))
    data = contained.page_data(result["profile"])
    processes = list(contained.page_processes(data))
    assert [found for _, _, *found in processes] == [[GROUPS[0], CONTAINERS[0], POD]], \
        (processes, result["output"], result["stats"])
    assert processes[0][0] > 1
    assert any(function == "work" for function in data["strings"])


def check_container(kernel, result, python, wanted):
    """What the profile of a machine has of one: that it is there once, whose it is, and its stacks.  WANTED:
    its control group, its name and its pod."""
    data = contained.page_data(result["profile"])
    found = {row: process for row, process in enumerate(contained.page_processes(data)) if wanted[1] in process}
    assert [process[1:] for process in found.values()] == [("deep.py", *wanted)], result["output"]
    row, = found
    assert found[row][0] > 1
    check_legal(contained.page_stacks(data)[row], python, kernel)


@each_contained_python
def test_container_of_runc(kernel, python):
    """With an overlay for a root, another C library but for one, and where Kubernetes has it; one of the others
    in a user namespace, the other one from a file that was deleted."""
    container = contained.with_python(kernel.machine.contents, python)
    result = kernel.succeeded(kernel.beside)
    check_ledger(json.loads(result["stats"]))
    check_container(kernel, result, python, (contained.GROUPS + container.group, container.name, container.pod))


@each_contained_python
def test_container_from_another(kernel, python):
    """In which the profiler is, with the capabilities that it needs and no others, and with the machine's
    processes; it sees their control groups from its own."""
    container = contained.with_python(kernel.machine.contents, python)
    result = kernel.succeeded(kernel.within)
    check_ledger(json.loads(result["stats"]))
    check_container(kernel, result, python, (contained.FROM_ANOTHER + container.group, container.name, container.pod))


def test_a_number_again(kernel):
    """Of a process: nobody gets what another one had, its command or its stacks; and each that is found, but
    the first that user space is asked about, is walked from its exec on, which it lives shortly after."""
    result = kernel.succeeded(kernel.reborn)
    check_ledger(json.loads(result["stats"]))
    worked, unknown, numbers = {}, {}, []
    for frames, count in parse_folded(result["profile"]):
        holder = re.fullmatch(r'process (\d+):".*reborn\.py child (\d+)"', frames[0].label)
        if not holder:
            continue
        numbers.append(int(holder[1]))
        worked.setdefault(holder[2], set()).update(
            frame.name for frame in frames if frame.name.startswith("child_"))
        if "not identified yet" in frames[-1].label:
            unknown[holder[2]] = count
    assert all(names <= {"child_" + i} for i, names in worked.items()), worked
    # The first may be over before the profiler, which has just begun, has had a CPU to look at them.
    assert sum(map(bool, worked.values())) >= HOLDERS / 2, result["profile"] + result["output"]
    # A thread of the profiler's may have taken one of them.
    assert NUMBER in numbers and len(set(numbers)) < len(worked), numbers
    # A library is looked for again each time where the kernel does not tell of it.
    if not without_mappings(kernel):
        # What ran before was not asked about.
        first = min(unknown, key=int, default=None)
        assert all(count <= KNOWN_WITHIN_S * RATE for i, count in unknown.items() if i != first), unknown


def test_shell(binary):
    """As `make vmshell` gives one: what is typed there is done there."""
    lacking = what_is_missing(machine.MACHINES[OLDEST], binary)
    if lacking:
        missing(lacking)
    with fetching(OLDEST):
        release = debian_kernels.release(machine.fetch_kernel(machine.MACHINES[OLDEST]))
    told = subprocess.run(["make", "-n", "--no-print-directory", "vmshell", "KERNEL=" + OLDEST], cwd=ROOT,
                          check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    shell = subprocess.Popen(told.splitlines()[-1].split(), cwd=ROOT, bufsize=0, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, start_new_session=True)
    late = threading.Timer(machine.PATIENCE_S, os.killpg, (shell.pid, signal.SIGKILL))
    late.start()
    try:
        said = b""
        while b"/ # " not in said:
            said += os.read(shell.stdout.fileno(), 4096) or pytest.fail(said.decode("utf-8", "replace"))
        shell.stdin.write(b"uname -r; pybpfprof --version; exit\n")
        said = shell.stdout.read().decode("utf-8", "replace").replace("\r", "")
        assert shell.wait() == 0
    finally:
        late.cancel()
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    assert "\n%s\npybpfprof " % release in said, said
