# SPDX-License-Identifier: BSD-2-Clause
"""runc's containers in the emulated machines with other kernels (test_all_kernels.py), which have only
cgroup v2.

Each container is in its own pod, and its root is an overlay.  The job "beside" starts the containers that run
Python; the job "within", whose profiler also runs in a container, ends them.  They are frozen except while
they are profiled: runc mostly waits, and that is quick in an emulator when nothing else runs.
"""

import collections
import json
import os
import shlex

from conftest import CAPABILITIES
from containers import NAMESPACES, bind, describe, run_arguments
from folded import Frame

import image  # machines.py adds its folder to the path

FOLDER = "/containers"
# pivot_root cannot replace the initial root file system.
RUN = ["runc", "--root", FOLDER + "/state", "run", "--no-pivot"]
POD = "%s-0000-4000-8000-000000000000"
GROUPS = "/kubepods.slice/kubepods-burstable.slice"
GROUP = "/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope"
# Replaces GROUPS as seen from the profiler's container, whose cgroup namespace is rooted at its own cgroup.
FROM_ANOTHER = "/../.."
# Kernels before 5.11 require this limit or CAP_SYS_RESOURCE.
LOCKED_MEMORY = {"type": "RLIMIT_MEMLOCK", "soft": 1 << 40, "hard": 1 << 40}

# Copies its own executable, deletes the copy and runs it.
DELETED = """
import os, sys
with open(sys.executable, "rb") as executable, open("/tmp/python", "wb") as copy:
    copy.write(executable.read())
os.chmod("/tmp/python", 0o755)
opened = os.open("/tmp/python", os.O_RDONLY)
os.unlink("/tmp/python")
os.execv("/proc/self/fd/%d" % opened, ["python", "-S"] + sys.argv[1:])
"""

# Precedes the profile in a page.  Then the numbers of fields per row of its tables.
DATA = '<script type="application/json" id="profile">'
FUNCTION_FIELDS, LOCATION_FIELDS, PROCESS_FIELDS, THREAD_FIELDS, SAMPLE_FIELDS = 5, 2, 11, 3, 3

# group: its cgroup's path below GROUPS; root: the lower layer of its overlay; config: config.json.
Container = collections.namedtuple("Container", "name pod group root config")


def make(digit, root, command, namespaces=NAMESPACES, mounts=(), capabilities=(), limits=()):
    """A container whose ID and pod UID repeat DIGIT."""
    name, pod = 64 * digit, POD % (8 * digit)
    group = GROUP % (pod.replace("-", "_"), name)
    config = describe(command, namespaces, mounts, capabilities, GROUPS + group)
    config["process"]["rlimits"] = list(limits)
    return Container(name, pod, group, root, config)


def pythons_within(contents):
    """The Pythons that run in containers: one from the machine's own root, and the first and the last of the
    others, which have the oldest and the newest C library."""
    if "runc" not in contents.tools():
        return []
    own, others = ([python for python in contents.pythons() if bool(python.root) == is_other]
                   for is_other in (False, True))
    return own[-1:] + others[:1] + others[1:][-1:]


def with_python(contents, python):
    """The container in which PYTHON runs deep.py.  The second one also has a user namespace.  The third one's
    Python is a deleted file."""
    index = pythons_within(contents).index(python)
    root = image.guest_command(python)[1] if python.root else "/"
    words = ["-c", DELETED] * (index == 2) + ["/programs/deep.py"]
    return make("abc"[index], root, [python.path, "-S", *words], NAMESPACES + ("user",) * (index == 1))


def with_profiler(command):
    """A container that sees the machine's processes, as with --pid=host, and its cgroups."""
    mounts = [{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["ro"]},
              bind("/sys/fs/cgroup"), bind("/tmp")]
    return make("f", "/", command, [name for name in NAMESPACES if name != "pid"], mounts, CAPABILITIES,
                [LOCKED_MEMORY])


def folder_of(container):
    return os.path.join(FOLDER, container.name)


def files(containers):
    return {folder_of(container) + "/config.json": json.dumps(container.config) for container in containers}


def start(container):
    """The command that runs it, and ends with it."""
    return ["unshare", *run_arguments(folder_of(container), container.root, container.name, RUN)]


def said(container):
    return folder_of(container) + "/said"


def freeze(containers, state=1):
    return "; ".join("echo %d >/sys/fs/cgroup%s%s/cgroup.freeze" % (state, GROUPS, container.group)
                     for container in containers)


def let_run(containers, seconds):
    """A shell script, also for the profiler's container."""
    return "%s; sleep %s; %s" % (freeze(containers, 0), seconds, freeze(containers))


def begin(containers):
    """A shell script that starts the containers.  At its end each is ready and frozen, or has reported an error."""
    lines = ["insmod /overlay.ko"]
    for container in containers:
        lines += ["(%s || echo failed) >%s 2>&1 &" % (shlex.join(start(container)), said(container)),
                  "until grep -q . %s; do sleep 0.1; done" % said(container), freeze([container])]
    return "\n".join(lines)


def then_end(containers, command):
    """A command that runs COMMAND, then prints the containers' output and kills them."""
    lines = ['"$@"; status=$?']
    for container in containers:
        lines.append("cat %s; kill -9 $(cat %s/pid)" % (said(container), folder_of(container)))
    return ["sh", "-c", "\n".join([*lines, "exit $status"]), "sh", *command]


def page_data(text):
    """The profile data of a page."""
    start = text.index(DATA) + len(DATA)
    return json.loads(text[start:text.index("</script>", start)])


def rows(data, table, fields):
    numbers = data[table]
    return [numbers[i:i + fields] for i in range(0, len(numbers), fields)]


def page_processes(data):
    """[(PID, short name, cgroup, container, pod), ...]"""
    strings = data["strings"]
    return [(row[0], *(strings[row[field]] for field in (2, 5, 6, 7)))
            for row in rows(data, "processes", PROCESS_FIELDS)]


def page_frames(data):
    """The Frame of each location."""
    strings = data["strings"]
    functions = [(strings[row[0]], strings[row[2]]) for row in rows(data, "functions", FUNCTION_FIELDS)]
    return [Frame("%s (%s%s)" % (*functions[function], ":%d" % line if line else "") if functions[function][1]
                  else functions[function][0])
            for function, line in rows(data, "locations", LOCATION_FIELDS)]


# The page's function kinds for Python functions and for reasons in brackets.
PYTHON, REASON = 1, 5


def page_stacks(data):
    """{index into page_processes(): [([Frame, ...] root first, count), ...]}, without native and kernel frames."""
    kinds = [row[4] for row in rows(data, "functions", FUNCTION_FIELDS)]
    shown = [frame if kinds[function] in (PYTHON, REASON) else None
             for frame, (function, _) in zip(page_frames(data), rows(data, "locations", LOCATION_FIELDS))]
    numbers, stacks = iter(data["stacks"]), [[]]
    for shared in numbers:
        added = [shown[next(numbers)] for _ in range(next(numbers))]
        stacks.append(stacks[-1][:shared] + added)
    owners = [row[0] for row in rows(data, "threads", THREAD_FIELDS)]
    found = {}
    for thread, stack, count in rows(data, "samples", SAMPLE_FIELDS):
        frames = [frame for frame in stacks[1 + stack] if frame]
        found.setdefault(owners[thread], []).append((frames, count))
    return found
