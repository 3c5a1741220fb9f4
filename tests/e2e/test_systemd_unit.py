# SPDX-License-Identifier: BSD-2-Clause
"""The systemd unit: its security score, and the agent at work under its restrictions.

This needs no running systemd. The unit's user, capabilities and system calls become a container's
configuration, which the kernel enforces.
"""

import errno
import glob
import os
import re
import signal
import subprocess

import pytest

from agents import Store, named, own, total
from conftest import CAPABILITIES, ROOT, wait_for, wait_used
from contained_agent import ContainedAgent
from containers import NAMESPACES, bind
from push_servers import backend  # noqa: F401 (fixture)

UNIT = os.path.join(ROOT, "deploy", "systemd", "pybpfprof-agent.service")
CONFIG = os.path.join(ROOT, "deploy", "agent.yaml")
DOCUMENT = os.path.join(ROOT, "docs", "deploy.md")
# The scores with and without CAP_SYS_ADMIN. A service without restrictions has 10.
SCORES = re.compile(r"`systemd-analyze security` gives it\s([\d.]+) of 10 \(0 is best\), and\s([\d.]+) without")
NOBODY = 65534
CAP_SYS_ADMIN = 21

PROT_WRITE, PROT_EXEC = 2, 4
FAMILIES = {"AF_INET": 2, "AF_INET6": 10}
ALLOW, REFUSE, KILL = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO", "SCMP_ACT_KILL_PROCESS"


# Example settings, commented out, that administrators may enable.
EXAMPLE = re.compile(r"^#(?=\w+=)", re.MULTILINE)


def read_unit():
    """{key: [value, ...]} of all sections. For sets, each value adds to those before it."""
    found = {}
    with open(UNIT, encoding="utf-8") as unit:
        for line in unit:
            key, equals, value = line.strip().partition("=")
            if equals and not line.startswith("#"):
                found.setdefault(key, []).append(value)
    return found


@pytest.fixture
def analyze(require):
    """analyze(ARGUMENT...): the output of systemd-analyze, which must succeed."""
    def run(*words):
        done = subprocess.run([require("systemd-analyze"), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr
    return run


def test_systemd_knows_all_settings(analyze, binary, tmp_path):
    """systemd knows all settings of the unit and of its examples. The binary's path is replaced."""
    with open(UNIT, encoding="utf-8") as file:
        text = file.read()
    assert "=/usr/bin/pybpfprof agent " in text
    text, examples = EXAMPLE.subn("", text)
    assert examples == 7
    copy = tmp_path / os.path.basename(UNIT)
    copy.write_text(text.replace("/usr/bin/pybpfprof", binary))
    said = [line for line in analyze("verify", "--man=no", str(copy)).splitlines()
            if copy.name in line]
    assert not said


def test_the_documented_score_is_right(analyze, tmp_path):
    """docs/deploy.md has the unit's score, and its score without CAP_SYS_ADMIN."""
    with open(UNIT, encoding="utf-8") as file:
        text = file.read()
    copy = tmp_path / os.path.basename(UNIT)
    copy.write_text(re.sub(r"^#(?=\w+=~CAP_SYS_ADMIN$)", "", text, flags=re.MULTILINE))
    with open(DOCUMENT, encoding="utf-8") as file:
        told = SCORES.search(file.read())
    assert told
    assert told.groups() == tuple(
        re.search(r"Overall exposure level .*: ([\d.]+) ", analyze("security", "--offline=true", str(path)))[1]
        for path in (UNIT, copy))


def capabilities(unit, key):
    return " ".join(unit[key]).split()


def test_capabilities():
    """The agent's capabilities, and CAP_SYS_ADMIN for perf_event_paranoid of Debian's kernels, see
    test_all_kernels.py."""
    unit = read_unit()
    needed = {"CAP_" + name.upper() for name in CAPABILITIES | {"sys_admin"}}
    for key in "AmbientCapabilities", "CapabilityBoundingSet":
        assert set(capabilities(unit, key)) == needed


def expand(names, groups):
    """The system calls in NAMES, with groups expanded."""
    calls = set()
    for name in names:
        calls |= expand(groups[name], groups) if name.startswith("@") else {name}
    return calls


def allowed_calls(unit, analyze):
    """The system calls that SystemCallFilter allows, after its exclusions."""
    groups, name = {}, None
    for line in analyze("syscall-filter").splitlines():
        if line.startswith("@"):
            name = line.strip()
            groups[name] = []
        elif line.startswith("    ") and name and not line.strip().startswith("#"):
            groups[name].append(line.strip())
    calls = set()
    for value in unit["SystemCallFilter"]:
        names = expand(value.lstrip("~").split(), groups)
        calls = calls - names if value.startswith("~") else calls | names
    return calls


def without_bits(index, bits):
    return {"index": index, "value": bits, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}


def seccomp(unit, calls):
    """SystemCallFilter, MemoryDenyWriteExecute and RestrictAddressFamilies.  A forbidden call kills
    the process here, as it might ignore an error. Address families get an error: the C library
    tries some of them, such as AF_UNIX and AF_NETLINK, to look up a name."""
    conditions = {
        "mmap": [[without_bits(2, PROT_WRITE)], [without_bits(2, PROT_EXEC)]],
        "mprotect": [[without_bits(2, PROT_EXEC)]],
        "pkey_mprotect": [[without_bits(2, PROT_EXEC)]],
        "socket": [[{"index": 0, "value": FAMILIES[name], "op": "SCMP_CMP_EQ"}]
                   for name in unit["RestrictAddressFamilies"][0].split()],
    }
    assert unit["MemoryDenyWriteExecute"] == ["yes"]
    rules = [{"names": sorted(calls - set(conditions)), "action": ALLOW}]
    for name, alternatives in conditions.items():
        rules += [{"names": [name], "action": ALLOW, "args": arguments}
                  for arguments in alternatives if name in calls]
    rules += [{"names": ["socket"], "action": REFUSE, "errnoRet": errno.EAFNOSUPPORT,
               "args": [{"index": 0, "value": value, "op": op}]}
              for value, op in ((min(FAMILIES.values()), "SCMP_CMP_LT"), (max(FAMILIES.values()), "SCMP_CMP_GT"))]
    return {"defaultAction": KILL, "syscalls": rules,
            "architectures": ["SCMP_ARCH_X86_64" if os.uname().machine == "x86_64"
                              else "SCMP_ARCH_AARCH64"]}


def place(source, destination):
    return dict(bind(str(source)), destination=destination)


@pytest.fixture
def service(require, binary, analyze, tmp_path):
    """service(CALLS, CONFIG, MOUNTS): the agent as the unit starts it, without these system calls."""
    running = []

    def start(without=(), config=CONFIG, mounts=()):
        unit, state = read_unit(), tmp_path / "state"
        state.mkdir()
        os.chown(state, NOBODY, NOBODY)
        held = capabilities(unit, "AmbientCapabilities")

        def adapt(container):
            container["mounts"] = [mount for mount in container["mounts"]
                                   if mount["destination"] != "/programs"]
            container["root"]["readonly"] = unit["ProtectSystem"] == ["strict"]
            process = container["process"]
            process["user"] = {"uid": NOBODY, "gid": NOBODY, "umask": int(unit["UMask"][0], 8)}
            process["noNewPrivileges"] = unit["NoNewPrivileges"] == ["yes"]
            process["capabilities"] = {name: held for name in (
                "bounding", "effective", "permitted", "inheritable", "ambient")}
            container["linux"]["seccomp"] = seccomp(unit, allowed_calls(unit, analyze) - set(without))

        places = [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
                  place(binary, "/usr/bin/pybpfprof"),
                  place(config, "/etc/pybpfprof/agent.yaml"), place(state, "/var/lib/pybpfprof"), *mounts]
        command, = unit["ExecStart"]
        namespaces = [name for name in NAMESPACES if name not in ("pid", "network", "cgroup")]
        folder = tmp_path / "container"
        folder.mkdir()
        running.append(ContainedAgent(require, folder, "/", command.split(), mounts=places,
                                      namespaces=namespaces, adapt=adapt))
        running[-1].begin()
        return running[-1], state

    yield start
    for agent in running:
        agent.end()


def held_by_any(pid):
    """The capabilities of all threads of a process. Threads that end meanwhile are skipped."""
    found = 0
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        try:
            with open(path, encoding="ascii") as status:
                found |= int(re.search(r"^CapPrm:\t(\w+)$", status.read(), re.MULTILINE)[1], 16)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_the_agent_works_within_the_restrictions(service, any_python, target, profile):
    """The agent names functions of another user's process, survives a reload and ends with status 0."""
    busy = target(any_python, "busy.py", environment={"OTEL_SERVICE_NAME": "busy-%d" % os.getpid()})
    agent, state = service()
    with open("/proc/%d/status" % agent.pid, encoding="ascii") as status:
        assert "\nUid:\t%d\t" % NOBODY in status.read()
    wait_for(lambda: not held_by_any(agent.pid) >> CAP_SYS_ADMIN & 1)
    os.kill(agent.pid, signal.SIGHUP)
    wait_used(2, busy.pid)
    status, said = agent.stop()
    assert status == 0, said
    assert "error" not in said and "refused" not in said, said
    run = profile.attempt("report", "--store", state, "--label",
                          "service_name=busy-%d" % os.getpid(), "-f", "folded", "-o", "-")
    stacks = [line for line in run.stdout.decode().splitlines() if ";leaf (" in line]
    assert sum(int(line.rpartition(" ")[2]) for line in stacks) > 0, run.stderr


def test_it_pushes_within_the_restrictions(service, backend, any_python, target, tmp_path):  # noqa: F811
    """It pushes to a host name that it must look up, with a credential that only its user can read."""
    target(any_python, "busy.py", environment=named("busy"))
    server = backend("pyroscope")
    secrets, hosts, config = tmp_path / "secrets", tmp_path / "hosts", tmp_path / "agent.yaml"
    secrets.mkdir()
    (secrets / "token").write_text("a secret\n")
    for path, mode in (secrets, 0o500), (secrets / "token", 0o400):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(mode)
    hosts.write_text("127.0.0.1 profiles.example\n")
    with open(CONFIG, encoding="utf-8") as file:
        text = file.read()
    folder = "/run/credentials/pybpfprof-agent.service"
    url = server.url().replace("127.0.0.1", "profiles.example")
    config.write_text(re.sub("^window:.*", "window: 0.5s", text, flags=re.MULTILINE)
                      + 'push: ["%s token=%s/token"]\n' % (url, folder))
    agent, state = service(config=config, mounts=[place(secrets, folder), place(hosts, "/etc/hosts")])
    wait_for(lambda: len(server.taken) >= 3)
    status, said = agent.stop()
    assert status == 0, said
    assert all(request.headers["Authorization"] == "Bearer a secret" for request in server.taken)
    assert 0 < total(server.rows()) <= sum(row[1] for row in Store(state).check().values())
    assert own("busy") in {row[0] for row in server.rows()}


def test_the_filter_is_in_force(service):
    """Without a needed system call the agent does not start. So the filter is enforced in the tests
    above."""
    with pytest.raises(AssertionError):
        service(without=["perf_event_open"])
