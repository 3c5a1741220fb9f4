# SPDX-License-Identifier: BSD-2-Clause
"""The jobs of the machines with other kernels (test_all_kernels.py), in the format of tests/kernels/guest.py."""

import os

from conftest import ROOT
from machines import OUTPUTS, PROFILER, debian_kernels, describe, describe_job, image

import machine_containers as contained

SECONDS_A_PYTHON, RATE = 1.35, 999
DEPTH = 1000
CONTAINED_SECONDS = 1.5
# Long enough for the changes that CHANGE makes.
CHANGING_SECONDS = 3
WORK = "def work(): return sum(range(1000))\nfor _ in range(1000): work()"

# -S, without the module `site`, halves the start-up time, which is long in an emulator.
BUSY = ["/agent", "-S", "/programs/busy.py"]
# The BPF program as compiled by a newer compiler.
NEWER, NEWER_COMPILER = "newer.bpf.o", "clang 19"
OF_ALL = [PROFILER, "-f", "html", *OUTPUTS[2:], "-r", str(RATE), "-a", "-d"]
# 2 is the highest value in mainline Linux.  Debian's kernels default to 3.
ALLOW_EVENTS = "echo 2 >/proc/sys/kernel/perf_event_paranoid"
REFUSE_EVENTS = "echo 3 >/proc/sys/kernel/perf_event_paranoid"
# With hidepid=2, /proc shows users without CAP_SYS_PTRACE only their own processes.
HIDE, SHOW_ALL = ("mount -t proc -o remount,hidepid=%d proc /proc" % hidden for hidden in (2, 0))
# The ptrace_scope values that can be lowered again, ending with Debian's default; and the one that cannot.
SCOPES, NOBODY_TRACES = (1, 2, 0), 3
RESTRICT_TRACING = "echo %d >/proc/sys/kernel/yama/ptrace_scope"
# Prints the capabilities that the profiler keeps once it has dropped the others.
SHOW_KEPT = '"$@" & while kill -0 $! && ! grep -q "NoNewPrivs:.1" /proc/$!/status; ' \
    'do sleep 0.01; done; grep CapPrm /proc/$!/status; '
THEN_WAIT = SHOW_KEPT + "grep -o hidepid=.* /proc/mounts; wait $!"
# Runs the agent beside a program, ends both as systemd would, and prints a report of the store.
STORE = "/var/lib/pybpfprof"
THEN_REPORT = "/agent -S /programs/busy.py & busy=$!; " + SHOW_KEPT + "sleep 2; kill $! $busy; wait $! && " \
    "exec %s report --store %s -f folded -o /tmp/profile" % (PROFILER, STORE)
MAKE_STORE = "mkdir -p %s; chown 65534:65534 %s" % (STORE, STORE)
CONFIG, CONFIG_THERE = os.path.join(ROOT, "deploy", "agent.yaml"), "/etc/pybpfprof/agent.yaml"
OLDEST, NEWEST = debian_kernels.OLDEST, debian_kernels.NEWEST
# Lockdown lasts until the machine is turned off.
LOCK_DOWN = "mount -t securityfs securityfs /sys/kernel/security; " \
    "echo confidentiality >/sys/kernel/security/lockdown; echo 0 >/proc/sys/net/core/bpf_jit_enable"
# QEMU emulates a cycle counter only for this architecture.  Debian's kernels do not turn its interrupt
# into an NMI.
WITH_CYCLES = "aarch64"
# In an emulator interrupts take so long that the kernel would soon lower the maximum rate.
ALLOW_ANY_RATE = "echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent"
# Run by a background subshell of the shell that will exec the profiler, so $$ is the profiler's PID.  Waits
# for it to drop its privileges, which it does once it samples.  If it ended early, it stays a zombie as
# long as this subshell keeps its output open.
UNTIL_SAMPLING = ("until grep -q 'NoNewPrivs:.1' /proc/$$/status; do "
                  "grep -q 'State:.[^Z]' /proc/$$/status || exit; sleep 0.1; done")
# Once it samples, the time of day changes, and a CPU that was offline at boot comes online, goes offline
# and comes back.
CPU = "/sys/devices/system/cpu/cpu1/online"
CHANGE = "(" + UNTIL_SAMPLING + "; date -s 2001-01-01; " \
    'for state in 1 0 1; do echo $state >%s; sleep 0.5; done) & exec "$@"' % CPU
# A memory limit like Kubernetes', with cgroup v2 alone.
GROUP = "/sys/fs/cgroup/kubepods.slice/pod.slice"
LIMIT = ("mount -t cgroup2 cgroup2 /sys/fs/cgroup; mkdir -p %s; for folder in %s/../.. %s/..; do "
         "echo +memory >$folder/cgroup.subtree_control; done; echo 67108864 >%s/memory.max" % (4 * (GROUP,)))
IN_GROUP = ["sh", "-c", 'echo $$ >%s/cgroup.procs; exec "$@"' % GROUP, "sh"]


def once_all_are_profiled(work, environment=""):
    """A command's prefix.  WORK runs in a shell once the command samples.  The command is ended after it."""
    return ["sh", "-c", '(%s; %s; kill $$) & %s exec "$@"' % (UNTIL_SAMPLING, work, environment), "sh"]


SECONDS_MAX = "90"
# A sampled CPU goes offline and comes back.
LEAVE = once_all_are_profiled("for state in 0 1; do echo $state >%s; sleep 0.7; done" % CPU)
# Three new processes start, one after the other.
THREE_TIMES = once_all_are_profiled('for i in 1 2 3; do /agent -S -c "$WORK"; done',
                                    "LD_PRELOAD=/verifier_cost.so")
# Two containers of a pod, as in Kubernetes, and one process outside: each in its own cgroup and with its
# own PID and other namespaces before its Python starts.
POD = "12345678-9abc-def0-1234-56789abcdef0"
CONTAINERS = [digit * 64 for digit in "ab"]
POD_GROUP = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice" % POD.replace("-", "_")
GROUPS = ["%s/cri-containerd-%s.scope" % (POD_GROUP, container) for container in CONTAINERS] + ["/system.slice"]
MAKE_GROUPS = "; ".join("mkdir -p /sys/fs/cgroup" + group for group in GROUPS)
IN_GROUPS = once_all_are_profiled(
    "for group in %s; do sh -c 'echo $$ >/sys/fs/cgroup'$group'/cgroup.procs; exec unshare -m -p -n -i -u -f "
    "--mount-proc /agent -S -c \"$WORK\"' & done; wait" % " ".join(GROUPS), "LD_PRELOAD=/verifier_cost.so")
# Fails unless its PID in its namespace is 1.
WORK_WITHIN = "import os; assert os.getpid() == 1\n" + WORK
# Several processes get the same PID in turn.  Each runs a different function.
NUMBER, HOLDERS = 4000, 6
HAND_ON = once_all_are_profiled(
    "for i in $(seq %d); do echo %d >/proc/sys/kernel/ns_last_pid; /agent -S /programs/reborn.py child $i; done"
    % (HOLDERS, NUMBER - 1))
CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_SYS_RESOURCE = 2, 19, 21, 24
CAP_PERFMON, CAP_BPF, CAP_CHECKPOINT_RESTORE = 38, 39, 40
TO_READ = [CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE]
FEWEST = TO_READ + [CAP_PERFMON, CAP_BPF]
# Needed only before 5.11, where BPF maps count as locked memory.
TO_LOCK_MEMORY = {OLDEST: [CAP_SYS_RESOURCE]}


def make_yama_jobs(short, check):
    """{name: job} for each ptrace_scope.  Without CAP_SYS_PTRACE, nobody profiles its own process ("alone") and
    runs `check` ("check").  With it, and a scope other than 0, it profiles its own process and one of
    root ("passing")."""
    own, roots = (describe(BUSY, 0, capabilities=held) for held in ([], None))
    without = [number for number in FEWEST if number != CAP_SYS_PTRACE]
    return {"%s %d" % (name, scope): describe_job(command, programs, "; ".join((ALLOW_EVENTS,
                                                                                RESTRICT_TRACING % scope)),
                                                  held, kernel=NEWEST)
            for scope in SCOPES
            for name, command, programs, held in (("alone", short, [own], without), ("check", check, [], without),
                                                  ("passing", short, [own, roots], FEWEST))[:3 if scope else 2]}


def make_containers(contents):
    """The containers with a Python, none without runc; and the command that profiles them."""
    made = [contained.with_python(contents, python) for python in contained.pythons_within(contents)]
    return made, once_all_are_profiled(contained.let_run(made, CONTAINED_SECONDS)) + OF_ALL + [SECONDS_MAX]


def make_jobs(contents, has_newer):
    """{name: job} in order of execution.  Most samples of "profile" are for test_shares.  "inner" and "every" print
    verifier costs.  "chosen" uses the newer compiler's BPF program, if present.  "beside" and "within" use runc."""
    pythons = contents.pythons()
    newer = {"BPF_OBJECT": "/" + NEWER} if has_newer else {}
    programs, deep = [], []
    for python in pythons:
        command = image.guest_command(python) + ["-S"]
        totals = "/tmp/totals-" + python.name
        programs += [describe(command + ["/programs/shares.py", totals, "10", "free"], 0, totals),
                     describe(command + ["/programs/deep.py"], 5),
                     describe(command + ["/programs/depth.py", str(DEPTH)], 10)]
        deep.append(describe(command + ["/programs/deep.py"], 0))
    busy = describe(BUSY, 0)
    everything = [PROFILER, *OUTPUTS, "-d", str(SECONDS_A_PYTHON * len(pythons)), "-r", str(RATE)]
    short = ["sh", "-c", THEN_WAIT, "sh", PROFILER, *OUTPUTS, "-d", "0.5"]
    # The profiler has the highest priority.  At its end the kernel waits for preempted kernel threads, which a
    # busy child of that priority would starve.
    inner = ["unshare", "-m", "-p", "-f", "--mount-proc", PROFILER, *OUTPUTS, "-t", "-d", "3", "--",
             "/agent", "-S", "-c", "import os; os.nice(20); exec(open('/programs/busy.py').read())"]
    started = [PROFILER, *OUTPUTS, "-r", str(RATE), "--", "/agent", "-c", WORK]
    check = [PROFILER, "check", "--json"]
    changing = ["sh", "-c", CHANGE, "sh", PROFILER, *OUTPUTS, "-d", str(CHANGING_SECONDS)]
    leaving = LEAVE + [PROFILER, *OUTPUTS, "-d", SECONDS_MAX]
    every = THREE_TIMES + [PROFILER, *OUTPUTS, "-v", "-a", "-d", SECONDS_MAX, "-r", str(RATE)]
    chosen = IN_GROUPS + OF_ALL + [SECONDS_MAX, "--cgroup", "/kubepods.slice", "--exclude",
                                   "container=containerd://" + CONTAINERS[1]]
    reborn = HAND_ON + [PROFILER, *OUTPUTS, "-d", SECONDS_MAX, "-r", str(RATE), "-a"]
    containers, of_them = make_containers(contents)
    from_within = contained.then_end(containers, contained.start(contained.with_profiler(of_them)))
    service = ["sh", "-c", THEN_REPORT, "sh", PROFILER, "agent", "--config", CONFIG_THERE]
    not_begun = once_all_are_profiled("echo of what") + [PROFILER, "-p", "1", "--wrong"]
    by_cycles = {"by_cycles": describe_job([PROFILER, *OUTPUTS, "-d", str(SECONDS_A_PYTHON * len(pythons)),
                                            "-e", "cycles@%d" % RATE], deep, ALLOW_ANY_RATE)}
    with_runc = {"beside": describe_job(of_them, first=contained.begin(containers)),
                 "within": describe_job(from_within, first=ALLOW_EVENTS)}
    return {"profile": describe_job(everything, programs),
            "check": describe_job(check, capabilities=FEWEST),
            "nobody": describe_job(short, [busy], "; ".join((ALLOW_EVENTS, HIDE)), FEWEST, TO_LOCK_MEMORY),
            "inner": describe_job(inner, first=SHOW_ALL, environment={"LD_PRELOAD": "/verifier_cost.so"}),
            "started": describe_job(started),
            "changing": describe_job(changing, [busy]),
            "leaving": describe_job(leaving, [busy, busy], first="echo 1 >%s" % CPU),
            "every": describe_job(every, environment={"WORK": WORK}),
            "limited": describe_job(IN_GROUP + check, first=LIMIT),
            "chosen": describe_job(chosen, first=MAKE_GROUPS, environment=dict(newer, WORK=WORK_WITHIN)),
            "reborn": describe_job(reborn),
            **(by_cycles if contents.ARCHITECTURE == WITH_CYCLES else {}),
            **(with_runc if containers else {}),
            "service": describe_job(service, first="; ".join((REFUSE_EVENTS, MAKE_STORE)),
                                    capabilities=FEWEST + [CAP_SYS_ADMIN], besides=TO_LOCK_MEMORY),
            **make_yama_jobs([PROFILER, *OUTPUTS, "-d", "0.5"], check),
            "no_tracing": describe_job([PROFILER, *OUTPUTS, "-d", "1", "-a"],
                                       first=RESTRICT_TRACING % NOBODY_TRACES, kernel=NEWEST),
            "not_begun": describe_job(not_begun, kernel=OLDEST),
            "locked": describe_job(check, first=LOCK_DOWN, kernel=OLDEST)}
