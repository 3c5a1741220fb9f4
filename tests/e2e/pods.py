# SPDX-License-Identifier: BSD-2-Clause
"""The objects of the manifests, and their pod as a container on this machine."""

import contextlib
import os
import shutil
import subprocess

import pytest

from conftest import ROOT, wait_used
from contained_agent import ContainedAgent
from containers import NAMESPACES, bind
from deploy_tools import OPERATOR, POD_MONITORS, find_file, find_tool, runtime_default

yaml = pytest.importorskip("yaml", reason="no python3-yaml here")

BASE = os.path.join(ROOT, "deploy", "kubernetes", "base")
NAME = "pybpfprof"
NODE = "a-node"
# Where the kubelet puts a service account's token.
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def in_bytes(quantity):
    """Converts a quantity in Mi."""
    assert quantity.endswith("Mi")
    return int(quantity[:-len("Mi")]) << 20


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder=BASE):
    """The manifests' objects as YAML."""
    if shutil.which("kubectl"):
        return output_of("kubectl", "kustomize", str(folder))
    return output_of(find_tool("kustomize"), "build", str(folder))


def pod_monitors():
    """The PodMonitor CustomResourceDefinition of the Prometheus operator."""
    with open(find_file(OPERATOR, POD_MONITORS), encoding="utf-8") as file:
        return yaml.safe_load(file)


def objects(text):
    """{kind: object}; there must be one of each kind."""
    found = [each for each in yaml.safe_load_all(text) if each]
    kinds = {each["kind"]: each for each in found}
    assert len(kinds) == len(found)
    return kinds


class Pod:
    """The DaemonSet's pod on this machine, as a kubelet and a runtime would run it."""

    def __init__(self, kinds, folder):
        self.spec = kinds["DaemonSet"]["spec"]["template"]["spec"]
        self.configuration = kinds["ConfigMap"]
        self.agent, = self.spec["containers"]
        self.folder = folder
        self.store = str(folder / "store")
        added = self.agent["securityContext"]["capabilities"]
        assert added["drop"] == ["ALL"]
        self.capabilities = {name.lower() for name in added["add"]}
        self.namespaces = [name for name in NAMESPACES if name != "pid"]
        # An API server, whose address and credentials the kubelet would give to the container.
        self.server = None
        # A Secret: {key: text}.
        self.secret = {}

    def push(self, url):
        """Makes it push to a server on this machine, and gives it the machine's network."""
        said = yaml.safe_load(self.configuration["data"]["agent.yaml"])
        self.configuration["data"]["agent.yaml"] = yaml.safe_dump(dict(said, push=[url]))
        self.namespaces.remove("network")

    def write_config_map(self, volume):
        name = volume["configMap"]["name"]
        assert self.configuration["metadata"]["name"] == name
        return self.write_files("config", self.configuration["data"])

    def write_files(self, name, texts, mode=0o644):
        folder = self.folder / name
        folder.mkdir()
        for key, text in texts.items():
            (folder / key).write_text(text)
            (folder / key).chmod(mode)
        return str(folder)

    def source(self, name):
        """The folder of a volume.  The test's own folder replaces the host's."""
        volume, = (each for each in self.spec["volumes"] if each["name"] == name)
        if "configMap" in volume:
            return self.write_config_map(volume)
        if "secret" in volume:
            return self.write_files("secret", self.secret, volume["secret"]["defaultMode"])
        assert volume["hostPath"] == {"path": "/var/lib/pybpfprof", "type": "DirectoryOrCreate"}
        os.mkdir(self.store, 0o755)
        return self.store

    def mounts(self):
        """The runtime's own mounts and the pod's volumes."""
        yield {"destination": "/proc", "type": "proc", "source": "proc",
               "options": ["nosuid", "noexec", "nodev"]}
        yield {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
               "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]}
        yield {"destination": "/sys", "type": "sysfs", "source": "sysfs",
               "options": ["nosuid", "noexec", "nodev", "ro"]}
        if self.server and self.spec["automountServiceAccountToken"]:
            yield dict(bind(str(self.server.credentials)), destination=ACCOUNT,
                       options=["rbind", "ro"])
        for mount in self.agent["volumeMounts"]:
            options = ["rbind", "ro" if mount.get("readOnly") else "rw"]
            yield dict(bind(self.source(mount["name"])), destination=mount["mountPath"],
                       options=options)

    def environment(self):
        for variable in self.agent["env"]:
            source = variable.get("valueFrom", {"fieldRef": {}})["fieldRef"]
            value = {"spec.nodeName": NODE}.get(source.get("fieldPath"), variable.get("value"))
            yield "%s=%s" % (variable["name"], value)
        if self.server:
            host, _, port = self.server.url.rpartition("//")[2].partition(":")
            yield "KUBERNETES_SERVICE_HOST=" + host
            yield "KUBERNETES_SERVICE_PORT=" + port

    def adapt(self, config):
        context = self.agent["securityContext"]
        process = config["process"]
        config["mounts"] = list(self.mounts())
        config["root"]["readonly"] = context["readOnlyRootFilesystem"]
        process["user"] = {"uid": context["runAsUser"], "gid": context["runAsGroup"]}
        process["noNewPrivileges"] = not context["allowPrivilegeEscalation"]
        process["env"] = list(self.environment())
        assert self.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        memory = in_bytes(self.agent["resources"]["limits"]["memory"])
        config["linux"].update(
            # An equal limit means no swap, as on a node.
            resources={"memory": {"limit": memory, "swap": memory}},
            seccomp=runtime_default(process["capabilities"]["bounding"]),
            # The default masked and read-only paths of container runtimes.
            maskedPaths=["/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys",
                         "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
                         "/proc/sched_debug", "/proc/scsi", "/sys/firmware"],
            readonlyPaths=["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                           "/proc/sysrq-trigger"])

    def container(self, require, root):
        """A container of the image whose root is ROOT."""
        assert self.spec["hostPID"] and not self.spec.get("hostNetwork")
        folder = self.folder / "container"
        folder.mkdir()
        return ContainedAgent(require, folder, root, ["/usr/bin/pybpfprof", *self.agent["args"]],
                              namespaces=self.namespaces, capabilities=self.capabilities,
                              adapt=self.adapt)


@contextlib.contextmanager
def running(pod, require, root):
    container = pod.container(require, root)
    try:
        container.begin()
        yield container
    finally:
        container.end()


def own_service():
    return "busy-%d" % os.getpid()


def start_busy(python, target):
    """A process of another user, with its own service name."""
    return target(python, "busy.py", environment={"OTEL_SERVICE_NAME": own_service()}, user=65534,
                  group=65534)


def run_beside(pod, require, root, busy):
    """Runs the pod for two seconds of BUSY's CPU time.  Returns the agent's messages."""
    with running(pod, require, root) as agent:
        wait_used(2, busy.pid)
        status, said = agent.stop()
    assert status == 0, said
    return said


def samples_in_leaf(profile, pod):
    labels = ["--label", "service_name=" + own_service(), "--label", "node=" + NODE]
    run = profile.attempt("report", "--store", pod.store, *labels, "-f", "folded", "-o", "-")
    return sum(int(line.rpartition(" ")[2]) for line in run.stdout.decode().splitlines()
               if ";leaf (" in line)
