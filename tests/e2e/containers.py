# SPDX-License-Identifier: BSD-2-Clause
"""Containers and PID namespaces for tests.

runc runs a Container as Kubernetes would: in its own cgroup, with its own namespaces and an
overlay as its root.  A Namespace is a PID namespace in which commands can be started.
"""

import json
import os
import signal
import uuid

from conftest import PROGRAMS, children_of, wait_for

# The upper layer is in a tmpfs, because it must not be inside the lower one.
RUN = """
mkdir -p "$1/layers" "$1/rootfs"
mount -t tmpfs none "$1/layers"
mkdir "$1/layers/upper" "$1/layers/work"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/layers/upper,workdir=$1/layers/work" \
    "$1/rootfs"
for name in dev proc programs tmp; do
    mkdir -p "$1/rootfs/$name"
done
folder=$1 name=$3
shift 3
exec "$@" --bundle "$folder" --pid-file "$folder/pid" "$name"
"""

NAMESPACES = ("pid", "mount", "network", "ipc", "uts", "cgroup")
# The host's UID of root in a user namespace.
FIRST_UID = 100000
MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
]


def bind(path):
    """A bind mount of this machine's PATH at the same path."""
    return {"destination": path, "type": "bind", "source": path, "options": ["rbind"]}


def describe(command, namespaces, mounts, capabilities, cgroup):
    """The container's config.json in the format of the OCI runtime specification."""
    held = ["CAP_" + name.upper() for name in sorted(capabilities)]
    mapping = [{"containerID": 0, "hostID": FIRST_UID, "size": 65536}]
    linux = {"namespaces": [{"type": name} for name in namespaces], "cgroupsPath": cgroup}
    if "user" in namespaces:
        linux.update(uidMappings=mapping, gidMappings=mapping)
    sets = ("bounding", "effective", "permitted")
    return {"ociVersion": "1.0.2", "hostname": "container", "linux": linux,
            "root": {"path": "rootfs"}, "mounts": MOUNTS + list(mounts),
            "process": {"args": [str(word) for word in command], "cwd": "/",
                        "user": {"uid": 0, "gid": 0},
                        "env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONUNBUFFERED=1",
                                "PYTHONDONTWRITEBYTECODE=1", "PYTHONUTF8=1"],
                        "capabilities": {name: held for name in sets}}}


def run_arguments(folder, root, name, command):
    """Arguments for unshare that run COMMAND, a runc command, for the container NAME with its config.json
    in FOLDER and an overlay over ROOT."""
    return ["-m", "sh", "-euc", RUN, "sh", folder, root, name, *command]


def remove_cgroup(path):
    """Removes the parents of the container's cgroup, which runc leaves behind, from each hierarchy."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        roots = [line.split()[1] for line in mounts if line.split()[2] in ("cgroup", "cgroup2")]
    for root in roots:
        folder = root + path
        while folder != root:
            try:
                os.rmdir(folder)
            except OSError:
                pass
            folder = os.path.dirname(folder)


class Container:
    """A container with an overlay over ROOT.  Its first process is a target (conftest.py)."""

    def __init__(self, require, folder, root, command, namespaces=NAMESPACES, mounts=(),
                 capabilities=(), cgroup="/kubepods/burstable/pod{pod}/{id}", adapt=None):
        """ADAPT(CONFIG) may change its config.json."""
        self.folder = str(folder)
        self.name = uuid.uuid4().hex * 2
        self.pod = str(uuid.uuid4())
        self.cgroup = cgroup.format(pod=self.pod, slice=self.pod.replace("-", "_"), id=self.name)
        self.runc = [require("runc"), "--root", os.path.join(self.folder, "state")]
        programs = dict(bind(PROGRAMS), destination="/programs", options=["rbind", "ro"])
        config = describe(command, namespaces, [programs, *mounts], capabilities, self.cgroup)
        if adapt:
            adapt(config)
        with open(os.path.join(self.folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.command = [require("unshare"),
                        *run_arguments(self.folder, root, self.name, [*self.runc, "run"])]

    def start(self, target):
        self.said = target.start(self.command).said
        # runc writes the file after it starts the process.
        wait_for(lambda: os.path.exists(os.path.join(self.folder, "pid")))

    @property
    def pid(self):
        """The PID of the container's first process on this machine."""
        with open(os.path.join(self.folder, "pid"), encoding="ascii") as file:
            return int(file.read())

    @property
    def enter(self):
        """A command's prefix that runs it in the container, with the container's capabilities."""
        return [*self.runc, "exec", self.name]

    def is_running(self):
        try:
            with open("/proc/%d/cgroup" % self.pid, encoding="ascii") as cgroup:
                return self.name in cgroup.read()
        except (FileNotFoundError, ProcessLookupError):
            return False

    def end(self):
        """Kills the first process.  runc then ends and removes the cgroup."""
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not os.path.exists(os.path.join(self.folder, "state", self.name)))
        remove_cgroup(self.cgroup)


def numbers(folder):
    """The PIDs of a process or thread in each PID namespace, from this machine's to its own.  FOLDER is
    its folder under /proc."""
    with open(os.path.join(folder, "status"), encoding="utf-8", errors="replace") as status:
        line = next(line for line in status if line.startswith("NSpid:"))
    return [int(word) for word in line.split()[1:]]


def innermost(pid):
    """Follows PID's only child, its only child and so on.  Returns the last one."""
    while True:
        children = children_of(pid)
        if not children:
            return pid
        pid, = children


class Namespace:
    """A PID namespace, which ends with its first process."""

    def __init__(self, require, target, within=()):
        waiting = target.start([*within, require("unshare"), "-m", "-p", "-f", "--kill-child",
                                "--mount-proc", "sh", "-c", "echo ready; exec sleep infinity"])
        self.target = target
        self.pid = innermost(waiting.pid)
        # A command's prefix that runs it there as a child process.
        self.enter = [require("nsenter"), "-m", "-p", "-t", str(self.pid)]

    def start(self, *command):
        """Starts a target in it.  Returns its PIDs and the data of its "ready" line."""
        started = self.target.start([*self.enter, *map(str, command)])
        return numbers("/proc/%d" % innermost(started.pid)), started.said
