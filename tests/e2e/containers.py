# SPDX-License-Identifier: BSD-2-Clause
"""Containers and namespaces for the tests of them.

A Container is runc's, as Kubernetes has them: in a cgroup of its own, with namespaces of its own,
and a root that is an overlay.  A Namespace is a PID namespace that commands can be started in.
"""

import json
import os
import signal
import uuid

from conftest import PROGRAMS, children_of, wait_for

# The layers are in memory: they must not lie within the root that they are laid over.
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
# Where user namespaces begin: root within is nobody without.
FIRST_UID = 100000
MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
]


def bind(path):
    """A mount of this machine's PATH, by the same name."""
    return {"destination": path, "type": "bind", "source": path, "options": ["rbind"]}


def describe(command, namespaces, mounts, capabilities, cgroup):
    """The container's config.json, as the OCI runtime specification has it."""
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
    """Of unshare: COMMAND, which is runc's, with the container whose config.json is in FOLDER, on the
    root folder ROOT."""
    return ["-m", "sh", "-euc", RUN, "sh", folder, root, name, *command]


def remove_cgroup(path):
    """Removes the folders that runc leaves above the container's own, in each hierarchy."""
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
    """A container on the root folder ROOT, whose first process is a target (conftest.py)."""

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
        # runc writes it when the process already runs.
        wait_for(lambda: os.path.exists(os.path.join(self.folder, "pid")))

    @property
    def pid(self):
        """This machine's number of the container's first process."""
        with open(os.path.join(self.folder, "pid"), encoding="ascii") as file:
            return int(file.read())

    @property
    def enter(self):
        """What comes behind it runs in the container, with its capabilities."""
        return [*self.runc, "exec", self.name]

    def is_running(self):
        try:
            with open("/proc/%d/cgroup" % self.pid, encoding="ascii") as cgroup:
                return self.name in cgroup.read()
        except (FileNotFoundError, ProcessLookupError):
            return False

    def end(self):
        """runc ends with the container, and takes its cgroup away."""
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not os.path.exists(os.path.join(self.folder, "state", self.name)))
        remove_cgroup(self.cgroup)


def numbers(folder):
    """The numbers of a process or a thread, from this machine's to its own PID namespace's; FOLDER
    is its own under /proc."""
    with open(os.path.join(folder, "status"), encoding="utf-8", errors="replace") as status:
        line = next(line for line in status if line.startswith("NSpid:"))
    return [int(word) for word in line.split()[1:]]


def innermost(pid):
    """The last of a line of processes that have one child each: what PID has started in the end."""
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
        # What comes behind it runs there, as a child.
        self.enter = [require("nsenter"), "-m", "-p", "-t", str(self.pid)]

    def start(self, *command):
        """Starts a target in it.  Its numbers, and what it said."""
        started = self.target.start([*self.enter, *map(str, command)])
        return numbers("/proc/%d" % innermost(started.pid)), started.said
