# SPDX-License-Identifier: BSD-2-Clause
"""All Debian kernels from the oldest supported one to the newest, each in an emulated machine; and two for
aarch64, with pages of 4 KiB and of 16 KiB.  test_kernels.py is the quick part.

In the job "profile", every Python runs three programs.  machine_jobs.py describes the other jobs, and
tests/kernels/ runs them.
"""

import json
import os
import re
import signal
import subprocess
import threading

import pytest

from conftest import ROOT, check_ledger, missing, parse_folded, whole_at_least
from machine_events import make_event_jobs, test_calls, test_probes, test_waits, test_who_keeps_the_gil  # noqa: F401
from machines import (
    build_image, debian_kernels, fetching, kernels, machine, stacks_of, what_is_missing,  # noqa: F401
    why_not_legal)
from machine_jobs import (
    CAP_BPF, CHANGING_SECONDS, CONFIG, CONFIG_THERE, CONTAINERS, DEPTH, GROUPS, HOLDERS, NEWER,
    NEWER_COMPILER, NEWEST, NUMBER, OLDEST, POD, RATE, SCOPES, TO_READ, WITH_CYCLES, make_containers, make_jobs)

import machine_containers as contained
import own

pytestmark = pytest.mark.timeout(1800)

MACHINES = machine.MACHINES
FUNCTIONS = ("alpha", "beta", "gamma", "delta", "epsilon")
BASELINE = os.path.join(ROOT, "tests", "kernels", "verifier_cost.json")
MOST_OF_BASELINE = 1.10
VERIFIED = re.compile(r"^verifier: (\w+) (\d+)$", re.MULTILINE)
# The time after exec within which a program with a known file is walked.  Earlier samples are counted, but
# have no stack.
KNOWN_WITHIN_S = 0.02
# A message of -v if the kernel cannot trace functions.
ASKED = "does not report file mappings"
# The newer compiler's BPF program is loaded in place of the profiler's own.
NEWER_ONE = {"LD_PRELOAD": "/verifier_cost.so", "BPF_OBJECT": "/" + NEWER}
KEPT = re.compile(r"^CapPrm:\t(\w+)$", re.MULTILINE)


def part(contents):
    """The mark for the part of `make prove` that boots these machines."""
    return pytest.mark.prove("kernels" if contents.ARCHITECTURE == own.ARCHITECTURE else "aarch64")


def param(name, *values):
    """A test parameter: a machine's name, and VALUES."""
    ids = "-".join([name, *(value.name for value in values)])
    return pytest.param(name, *values, id=ids, marks=part(MACHINES[name].contents))


def only(*names):
    return pytest.mark.parametrize("kernel", list(map(param, names)), indirect=True, scope="module")


def each_of(pythons):
    return pytest.mark.parametrize("kernel,python", [
        param(name, python) for name, described in MACHINES.items() for python in pythons(described.contents)
    ], indirect=["kernel"], scope="module")


each_python = each_of(lambda contents: contents.pythons())
each_contained_python = each_of(contained.pythons_within)
with_cycles = only(*(name for name, described in MACHINES.items()
                     if described.contents.ARCHITECTURE == WITH_CYCLES))


@pytest.fixture(scope="module")
def initrd(binary, tmp_path_factory):
    """initrd(CONTENTS): the path of the image for machines with these contents."""
    def make(contents):
        newer = os.path.join(os.path.dirname(binary), contents.OUTPUT, NEWER)
        has_newer = os.path.exists(newer)
        containers, of_them = make_containers(contents)
        return build_image(str(tmp_path_factory.mktemp("image")), binary, contents,
                           {**make_event_jobs(contents, NEWER_ONE if has_newer else {}),
                            **make_jobs(contents, has_newer)},
                           {CONFIG_THERE: CONFIG, **({"/" + NEWER: newer} if has_newer else {})},
                           contained.files([*containers, contained.with_profiler(of_them)]))
    return make


@pytest.fixture(scope="module", params=list(map(param, MACHINES)))
def kernel(request, kernels):  # noqa: F811
    with fetching(request.param):
        return kernels[request.param].result()


@pytest.mark.parametrize("contents,wanted", [
    pytest.param(contents, wanted, id="%s-%d.%d" % (contents.__name__, *wanted), marks=part(contents))
    for contents in dict.fromkeys(described.contents for described in MACHINES.values())
    for wanted in contents.WANTED])
def test_python_is_there(contents, wanted):
    if not any(python.version[:2] == wanted for python in contents.pythons()):
        pytest.skip("no Python %d.%d here" % wanted)


def test_ledger(kernel, measured):
    ledger = kernel.ledger()
    measured("kernel %s: seconds" % kernel.release, round(kernel.seconds))
    measured("kernel %s: samples with Python frames" % kernel.release,
             "%d of %d" % (ledger["python"], ledger["samples"]), "99 %")
    check_ledger(ledger)
    assert ledger["lost"] == ledger["truncated"] == 0
    # Some threads have not run Python code yet: new ones in 2.7, on aarch64 also a process's first one.
    assert ledger["python"] + ledger["no_python"] >= whole_at_least(ledger["samples"]), ledger
    assert ledger["python"] >= 0.99 * ledger["samples"] > 1000
    counted = sum(count for _, count in parse_folded(kernel.succeeded("profile")["profile"]))
    assert counted == ledger["samples"]


def stacks_under(kernel, python, program):
    """The stacks of one program without their process frames, and the CPU time that the program reported."""
    result = kernel.succeeded("profile")
    part_of_it = result["programs"][3 * kernel.pythons.index(python) + ("shares", "deep", "depth").index(program)]
    stacks = stacks_of(result, part_of_it)
    assert stacks, (part_of_it, result["output"], result["stats"], kernel.console[-2000:])
    return stacks, part_of_it["used"]


@each_python
def test_shares(kernel, python, sampled_shares):
    """Each function's share of samples is its share of the CPU time."""
    stacks, used = stacks_under(kernel, python, "shares")
    sampled_shares([sum(count for frames, count in stacks if any(frame.name == name for frame in frames))
                    for name in FUNCTIONS], used)


# Labels of samples before a Python has started, where all processes are profiled.
BEGINNINGS = "[Python is starting or has ended]", "[process not identified yet]"


def check_legal(stacks, python, kernel, measured):
    """No stack of deep.py is impossible, and nearly all are whole once it has started."""
    wrong, whole, lacking = why_not_legal(stacks, python)
    measured("kernel %s, Python %s: stacks that never were" % (kernel.release, python.name),
             "%d of %d" % (sum(wrong.values()), whole), "0")
    assert wrong == {}
    for label in BEGINNINGS:
        lacking.pop(label, None)
    # With one CPU and the GIL of 2.7, a new thread may wait long before it runs Python code.
    wanted = 0.9 if python.version < (3,) else 0.98
    assert whole >= wanted * (whole + sum(lacking.values())) > 50, lacking


@pytest.mark.proves("kernels")
@each_python
def test_no_impossible_stack(kernel, python, figure, measured):
    check_legal(stacks_under(kernel, python, "deep")[0], python, kernel, measured)
    figure(kernel.release.partition("-")[0])


@each_python
def test_1000_frames_are_whole(kernel, python):
    stacks, _ = stacks_under(kernel, python, "depth")
    # In the first second every frame of every sample is checked fully, which is slow in an emulator.
    assert sum(count for _, count in stacks) >= 3
    for frames, _ in stacks:
        names = [frame.name for frame in frames if frame.file.endswith("depth.py")]
        assert names == ["descend"] * DEPTH + ["bottom"]
        assert frames[0].short.lstrip("_") == "bootstrap"


def test_in_a_pid_namespace(kernel):
    """The profiler, its reader thread and its target have the first PIDs of a PID namespace."""
    stacks = parse_folded(kernel.succeeded("inner")["profile"])
    assert sum(count for frames, count in stacks
               if any(frame.name == "spin" for frame in frames)) > 20
    assert {frames[0].label.split(":")[0] for frames, _ in stacks} == {"thread (3)"}


def test_program_from_its_start(kernel):
    """The profiler first examines the target before it has loaded everything that Python needs."""
    check_ledger(kernel.ledger("started"))
    stacks = parse_folded(kernel.succeeded("started")["profile"])
    assert sum(count for frames, count in stacks
               if [frame.name for frame in frames] == ["<module>", "work"]) > 100


def without_mappings(kernel, is_refused=False):
    """The checks that are LIMITED on this kernel: "mappings" where `record` works without the BPF program for
    them, and more if BPF is refused."""
    has_program = "verifier: follow_mapping " in kernel.succeeded("every")["output"]
    lacking = ["mappings", "native frames", "context switches"] if is_refused else ["mappings"] * (not has_program)
    return dict.fromkeys(lacking, "LIMITED")


def test_check_in_a_control_group(kernel):
    result = kernel.succeeded("limited")
    checks = {check["name"]: check for check in json.loads(result["output"])["checks"]}
    assert {name for name, check in checks.items() if check["verdict"] != "OK"} == \
        {"memory", *without_mappings(kernel)}
    assert "64 MiB" in json.dumps(checks["memory"])


def check_that_cpu_1_is_missed(result):
    """CPU 1 came online during the run.  One message reports it, and the ledger counts it."""
    assert json.loads(result["stats"])["cpus_not_sampled"] == 1
    told = [line for line in result["output"].splitlines() if "came online" in line]
    assert len(told) == 1 and "CPU 1 " in told[0]


def test_while_cpus_and_the_clock_change(kernel):
    """The duration ignores the change of the clock.  The CPU that came online is not sampled."""
    result = kernel.succeeded("changing")
    ledger = json.loads(result["stats"])
    check_ledger(ledger)
    assert CHANGING_SECONDS - 0.1 < ledger["duration_s"] < CHANGING_SECONDS + 2
    assert ledger["samples"] > 10
    check_that_cpu_1_is_missed(result)


def test_while_a_cpu_goes_and_comes_back(kernel):
    """The CPU is not sampled after it comes back.  The others are."""
    result = kernel.succeeded("leaving")
    check_ledger(json.loads(result["stats"]))
    assert any(frame.name == "leaf" for frames, _ in parse_folded(result["profile"]) for frame in frames)
    check_that_cpu_1_is_missed(result)


def has_name(stacks, name):
    return any(frame.name == name for frames, _ in stacks for frame in frames)


def version(text):
    return [int(number) for number in re.findall(r"\d+", text)[:2]]


def not_ok(result, status=4):
    """{name: verdict} of the checks that are not OK, except for kernel symbols.  `check` must exit with STATUS."""
    assert result["status"] == status, result["output"]
    return {check["name"]: check["verdict"] for check in json.loads(result["output"])["checks"]
            if check["verdict"] != "OK" and check["name"] != "kernel symbols"}


def test_check_with_fewest_privileges(kernel):
    """The default perf_event_paranoid of Debian's kernels requires CAP_SYS_ADMIN."""
    missing = {"perf_event_paranoid", "perf events", "sample"}
    if version(kernel.release) < [5, 11]:
        missing |= {"locked memory", "BPF program"}
    assert not_ok(kernel.result("check")) == dict(dict.fromkeys(missing, "MISSING"),
                                        **without_mappings(kernel, "BPF program" in missing))


def check_fewest(kernel, job, samples):
    """There are more than SAMPLES samples, and the profiler keeps only the capabilities that it needs later."""
    result = kernel.succeeded(job)
    stacks = parse_folded(result["profile"])
    assert sum(count for frames, count in stacks
               if any(frame.name == "spin" for frame in frames)) > samples, result["output"]
    kept = TO_READ + [CAP_BPF] * (version(kernel.release) < [5, 19])
    assert int(KEPT.search(result["output"]).group(1), 16) == sum(1 << bit for bit in kept)


def test_fewest_privileges(kernel):
    """With a lower perf_event_paranoid they suffice, before 5.11 with CAP_SYS_RESOURCE; also with hidepid.
    CAP_BPF is kept only on old kernels."""
    check_fewest(kernel, "nobody", 10)
    assert "hidepid=" in kernel.result("nobody")["output"]


def test_service(kernel):
    """The agent runs as in Debian's package, with the default perf_event_paranoid of Debian's kernels.  It starts
    with CAP_SYS_ADMIN, which it drops.  Before 5.11 CAP_SYS_RESOURCE replaces the package's limit of locked
    memory."""
    check_fewest(kernel, "service", 3)


@pytest.mark.parametrize("scope", SCOPES)
@only(NEWEST)
def test_ptrace_scope(kernel, scope):
    """Only at 0 does a user not need CAP_SYS_PTRACE for its own processes.  The capability overrides 1 and 2.
    At 1 the trial of `check` works anyway, because its target is its child."""
    alone, check = kernel.result("alone %d" % scope), kernel.result("check %d" % scope)
    found = {told["name"]: told["found"] for told in json.loads(check["output"])["checks"]}
    assert found["ptrace_scope"] == "%d; CAP_SYS_PTRACE overrides it" % scope
    if scope:
        passing = kernel.succeeded("passing %d" % scope)
        for program in passing["programs"]:
            assert has_name(stacks_of(passing, program), "spin"), passing["output"]
        assert alone["status"] == 4 and "(missing CAP_SYS_PTRACE): run as root " in alone["output"]
        assert alone["profile"] is None
        assert not_ok(check) == dict({"CAP_SYS_PTRACE": "MISSING"}, **without_mappings(kernel),
                                     **{"processes": "MISSING"} if scope > 1 else {})
    else:
        assert has_name(parse_folded(kernel.succeeded("alone 0")["profile"]), "spin")
        assert not_ok(kernel.succeeded("check 0"), 0) == \
            dict({"CAP_SYS_PTRACE": "LIMITED"}, **without_mappings(kernel))


@only(NEWEST)
def test_ptrace_scope_3_stops_even_root(kernel):
    """An error is reported instead of a profile without stacks."""
    result = kernel.result("no_tracing")
    assert result["status"] == 4, result["output"]
    assert "ptrace_scope is 3" in result["output"]
    assert result["profile"] is None


@with_cycles
def test_hardware_event(kernel, measured):
    """Stacks are right, too, when the overflow of a hardware counter runs the BPF program."""
    result = kernel.succeeded("by_cycles")
    ledger = json.loads(result["stats"])
    check_ledger(ledger)
    event = ledger["per_event"]["cycles"]
    assert event["value"] == sum(count for _, count in parse_folded(result["profile"]))
    assert ledger["lost"] == 0
    assert ledger["python"] >= 0.98 * ledger["samples"] > 1000, ledger
    for python, part in zip(kernel.pythons, result["programs"]):
        check_legal(stacks_of(result, part), python, kernel, measured)


@only(OLDEST)
def test_profiler_that_does_not_start(kernel):
    """The script that waits for it to sample ends, and the job has its error message."""
    result = kernel.result("not_begun")
    assert result["status"] == 2
    assert "--wrong" in result["output"] and "of what" not in result["output"]


@only(OLDEST)
def test_check_under_lockdown(kernel):
    """The BPF JIT is off, too."""
    missing = dict.fromkeys(("lockdown", "BPF program", "sample"), "MISSING")
    assert not_ok(kernel.result("locked")) == dict(missing, mappings="LIMITED",
                                                 **dict.fromkeys(("BPF JIT", "native frames", "context switches"), "LIMITED"))


def check_cost(kernel, compiler, output, measured):
    """Compares the number of instructions that the verifier processes, at most a million, with a baseline.  A
    kernel version without a baseline uses that of the last version before it.  A compiler without a baseline
    fails the test."""
    found = {name: int(count) for name, count in VERIFIED.findall(output)}
    architecture = kernel.machine.architecture.__name__
    with open(BASELINE, encoding="utf-8") as file:
        baselines = json.load(file).get(compiler, {}).get(architecture)
    assert baselines, "%s has no numbers of %s: add to them, for %s, \"%s\": %s" % (
        os.path.relpath(BASELINE, ROOT), compiler, architecture, ".".join(map(str, version(kernel.release))),
        json.dumps(found))
    known = max((key for key in baselines if version(key) <= version(kernel.release)), key=version)
    for name, count in found.items():
        measured("kernel %s, %s: instructions verified of %s" % (kernel.release, compiler, name), count,
                 "%s (of %s) and 10 %% at most" % (baselines[known].get(name), known))
    assert found.keys() == baselines[known].keys()
    for name, count in found.items():
        assert count <= MOST_OF_BASELINE * baselines[known][name], name


def test_verifier_cost(kernel, require, measured):
    told = subprocess.run([require("clang"), "--version"], stdout=subprocess.PIPE, universal_newlines=True,
                          check=True).stdout
    compiler = re.search(r"clang version \d+", told).group().replace(" version", "")
    output = "".join(kernel.succeeded(job)["output"] for job in ("inner", "every"))
    check_cost(kernel, compiler, output, measured)


def test_verifier_cost_of_a_newer_compiler(kernel, binary, measured):
    """A newer compiler omits checks that it can prove redundant, but an old kernel's verifier cannot."""
    if not os.path.exists(os.path.join(os.path.dirname(binary), kernel.machine.contents.OUTPUT, NEWER)):
        missing(NEWER_COMPILER.replace(" ", "-"))
    check_cost(kernel, NEWER_COMPILER, kernel.succeeded("chosen")["output"], measured)


def test_every_python(kernel):
    """Pythons that start in turn while all are profiled."""
    result = kernel.succeeded("every")
    check_ledger(json.loads(result["stats"]))
    at_work = {frames[0].label for frames, _ in parse_folded(result["profile"])
               if any(frame.name == "work" for frame in frames)}
    assert len(at_work) == 3, result["profile"][:2000] + result["output"]
    assert all(label.startswith("process ") for label in at_work)
    if kernel.machine.architecture.__name__ == "x86_64":
        assert ASKED not in result["output"]


def test_one_container_is_chosen(kernel):
    """The filter uses cgroup v2.  The profile has only the chosen container, with its pod and its PID on this
    machine; neither the other container of the pod nor the process outside."""
    result = kernel.succeeded("chosen")
    check_ledger(json.loads(result["stats"]))
    data = contained.page_data(result["profile"])
    processes = list(contained.page_processes(data))
    assert [found for _, _, *found in processes] == [[GROUPS[0], CONTAINERS[0], POD]], \
        (processes, result["output"], result["stats"])
    assert processes[0][0] > 1
    assert any(function == "work" for function in data["strings"])


def check_container(kernel, result, python, wanted, measured):
    """The machine's profile has the container's process once, with its identity and legal stacks.  WANTED: the
    container's cgroup, name and pod."""
    data = contained.page_data(result["profile"])
    found = {row: process for row, process in enumerate(contained.page_processes(data)) if wanted[1] in process}
    assert [process[1:] for process in found.values()] == [("deep.py", *wanted)], result["output"]
    row, = found
    assert found[row][0] > 1
    check_legal(contained.page_stacks(data)[row], python, kernel, measured)


@each_contained_python
def test_container_of_runc(kernel, python, measured):
    """The container's root is an overlay, and its cgroup is as in Kubernetes.  All but one have another C library;
    of these, one is in a user namespace, and the other runs a deleted file."""
    container = contained.with_python(kernel.machine.contents, python)
    result = kernel.succeeded("beside")
    check_ledger(json.loads(result["stats"]))
    check_container(kernel, result, python, (contained.GROUPS + container.group, container.name, container.pod),
                    measured)


@each_contained_python
def test_container_from_another(kernel, python, measured):
    """The profiler runs in its own container, with the machine's PID namespace and only the capabilities that it
    needs.  It sees the other cgroups relative to its own."""
    container = contained.with_python(kernel.machine.contents, python)
    result = kernel.succeeded("within")
    check_ledger(json.loads(result["stats"]))
    check_container(kernel, result, python, (contained.FROM_ANOTHER + container.group, container.name, container.pod),
                    measured)


def test_a_reused_pid(kernel):
    """No process gets the command or stacks of a former one with its PID.  Each short-lived process that is found
    is walked soon after its exec, except the first that user space is asked about."""
    result = kernel.succeeded("reborn")
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
    # The first ones may end before the profiler, which has just started, gets a CPU.
    assert sum(map(bool, worked.values())) >= HOLDERS / 2, result["profile"] + result["output"]
    # A thread of the profiler may have taken the PID once.
    assert NUMBER in numbers and len(set(numbers)) < len(worked), numbers
    # Without mappings from the kernel, libraries must be looked up again each time.
    if not without_mappings(kernel):
        # Earlier processes were not asked about.
        first = min(unknown, key=int, default=None)
        assert all(count <= KNOWN_WITHIN_S * RATE for i, count in unknown.items() if i != first), unknown


@pytest.mark.prove("kernels")
def test_shell(binary):
    """`make vmshell` runs typed commands."""
    lacking = what_is_missing(MACHINES[OLDEST], binary)
    if lacking:
        missing(lacking)
    with fetching(OLDEST):
        release = debian_kernels.release(machine.fetch_kernel(MACHINES[OLDEST]))
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
