# SPDX-License-Identifier: BSD-2-Clause
"""The manifests and the chart: they describe the same objects, Kubernetes accepts them, and the agent
works in the container that they describe."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agents import Store, label_sets
from api_servers import pod as pod_object
from conftest import CAPABILITIES, ROOT, wait_for
from containers import Container
from deploy_tools import BUILD_TIMEOUT_S, KUBERNETES, find_tool, write_schemas
from pods import (BASE, NAME, NODE, Pod, build, in_bytes, objects, output_of, own_service, pod_monitors,
                  run_beside, running, samples_in_leaf, start_busy, yaml)
from test_pods import cluster, is_named, labels_of  # noqa: F401 (a fixture among them)
from push_servers import authority, backend  # noqa: F401 (fixtures)

CHART = os.path.join(ROOT, "deploy", "helm", "pybpfprof")
# The labels and annotations that helm adds.
OF_HELM = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart",
           "checksum/config"}
# Suffixes of names: kustomize adds one to a ConfigMap's, the chart to those of cluster-wide objects.
ADDED = re.compile(r"(?<={0})(-[0-9a-z]{{10}}|\.{0}(\.priority-1000)?)$".format(NAME))
# A helm that was installed by Go assumes an old version of Kubernetes.
KUBERNETES_VERSION = KUBERNETES.rpartition("@")[2]

SECRETS = "/run/secrets/pybpfprof"
ADDRESS = "192.0.2.1"
GET = ("import sys, urllib.request\n"
       "print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode(), end='')\n")

pytestmark = [pytest.mark.timeout(BUILD_TIMEOUT_S), pytest.mark.prove("deploy")]


def template(*words):
    """The chart's objects, as YAML."""
    return output_of(find_tool("helm"), "template", "--kube-version", KUBERNETES_VERSION,
                     "--namespace", NAME, NAME, CHART, *words)


def plain(value):
    """VALUE without the suffixes and labels that the tools add."""
    if isinstance(value, dict):
        kept = {key: plain(each) for key, each in value.items() if key not in OF_HELM}
        return {key: each for key, each in kept.items() if (key, each) != ("annotations", {})}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return ADDED.sub("", value) if isinstance(value, str) else value


def listed(value):
    """VALUE with variables, volumes and mounts sorted: their order means nothing."""
    pod = value["DaemonSet"]["spec"]["template"]["spec"]
    for container in pod["containers"]:
        for some in container["env"], container["volumeMounts"], pod["volumes"]:
            some.sort(key=lambda one: one["name"])
    return value


@pytest.fixture
def customized(tmp_path):
    """customized(COMPONENT, MORE): the manifests' objects with that component, as YAML."""
    def say(component=None, more=""):
        folder = tmp_path / (component or "customized")
        folder.mkdir()
        place = os.path.relpath(os.path.join(ROOT, "deploy", "kubernetes"),
                                os.path.realpath(folder))
        components = ["%s/components/%s" % (place, component)] if component else []
        (folder / "kustomization.yaml").write_text(
            "resources: [%s/base]\ncomponents: %s\n%s" % (place, json.dumps(components), more))
        return build(folder)
    return say


@pytest.fixture
def monitored(customized):
    """The manifests' objects with the component for Prometheus, as YAML."""
    return customized("podmonitor")


def check_same(ours, charts):
    ours, charts = (listed(plain(objects(text))) for text in (ours, charts))
    for each in ours, charts:
        for one in each.values():
            # The user chooses a chart's namespace when installing it.
            one["metadata"].pop("namespace", None)
        each["ConfigMap"]["data"] = {name: yaml.safe_load(text) for name, text
                                     in each["ConfigMap"]["data"].items()}
    assert ours == charts
    return set(ours)


def test_manifests_and_chart_agree():
    assert check_same(build(), template()) == {
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "PriorityClass",
        "DaemonSet"}


def test_manifests_and_chart_agree_for_prometheus(monitored):
    assert "PodMonitor" in check_same(monitored, template("--set", "podMonitor.enabled=true"))


def test_manifests_and_chart_agree_without_pod_names(customized):
    """There is no role and no token."""
    text = customized("no-pod-names")
    assert check_same(text, template("--set", "podNames=false")) == {
        "ServiceAccount", "ConfigMap", "PriorityClass", "DaemonSet"}
    pod = objects(text)["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert {"name": "PYBPFPROF_KUBERNETES", "value": "off"} in pod["containers"][0]["env"]


def test_manifests_and_chart_agree_with_a_secret(customized):
    text = customized("secret")
    check_same(text, template("--set", "secretName=" + NAME))
    pod = objects(text)["DaemonSet"]["spec"]["template"]["spec"]
    assert {"name": "secret", "secret": {"secretName": NAME, "defaultMode": 0o400}} in pod["volumes"]
    assert {"name": "secret", "mountPath": SECRETS,
            "readOnly": True} in pod["containers"][0]["volumeMounts"]


def test_the_agent_may_only_list_and_watch_pods(customized):
    """In any namespace."""
    kinds = objects(customized(more="namespace: elsewhere\n"))
    assert kinds["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    binding, account = kinds["ClusterRoleBinding"], kinds["ServiceAccount"]
    assert binding["roleRef"]["name"] == kinds["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "namespace": "elsewhere",
                                    "name": account["metadata"]["name"]}]
    assert account["automountServiceAccountToken"] is False
    pod = kinds["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert pod["automountServiceAccountToken"] is True


def test_settings_of_the_pod():
    """Checks each setting, because the comparison misses an error in both the manifests and the chart."""
    kinds = objects(build())
    name = kinds["PriorityClass"]["metadata"]["name"]
    assert (kinds["PriorityClass"]["value"], kinds["PriorityClass"]["preemptionPolicy"]) == (
        1000, "Never")
    assert kinds["DaemonSet"]["spec"]["updateStrategy"] == {
        "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}
    pod = dict(kinds["DaemonSet"]["spec"]["template"]["spec"])
    agent, = pod.pop("containers")
    volumes = pod.pop("volumes")
    assert pod == {
        "serviceAccountName": NAME, "automountServiceAccountToken": True,
        "enableServiceLinks": False, "priorityClassName": name, "hostPID": True,
        "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"},
                            "appArmorProfile": {"type": "Unconfined"},
                            "seLinuxOptions": {"type": "spc_t"}}}
    assert agent["securityContext"] == {
        "runAsUser": 0, "runAsGroup": 0, "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True, "capabilities": {
            "drop": ["ALL"], "add": ["BPF", "PERFMON", "SYS_PTRACE", "CHECKPOINT_RESTORE",
                                     "DAC_READ_SEARCH"]}}
    assert agent["resources"] == {"requests": {"cpu": "50m", "memory": "128Mi"},
                                  "limits": {"memory": "512Mi"}}
    assert [sorted(volume) for volume in volumes] == [["configMap", "name"], ["hostPath", "name"]]


def test_the_systemd_service_has_the_same_configuration():
    with open(os.path.join(ROOT, "deploy", "agent.yaml"), encoding="utf-8") as file:
        service = yaml.safe_load(file)
    assert service == yaml.safe_load(objects(build())["ConfigMap"]["data"]["agent.yaml"])


def test_the_memory_limit_is_below_the_kill_limit():
    """The kernel gets a quarter more for BPF maps and the page cache."""
    kinds = objects(build())
    limits = kinds["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    unit = Path(ROOT, "deploy", "systemd", "pybpfprof-agent.service").read_text(encoding="utf-8")
    service = Path(ROOT, "deploy", "agent.yaml").read_text(encoding="utf-8")
    for text, kills in ((kinds["ConfigMap"]["data"]["agent.yaml"], limits["memory"]),
                        (service, re.search("^MemoryMax=(.*)$", unit, re.MULTILINE)[1] + "i")):
        limit = yaml.safe_load(text)["memory-limit"]
        assert in_bytes(limit + "i") * 5 // 4 <= in_bytes(kills)


def test_lint():
    said = output_of(find_tool("helm"), "lint", "--strict", CHART)
    assert "0 chart(s) failed" in said


def test_versions(binary):
    """Binary, chart and image have one version."""
    version = output_of(binary, "--version").split()[1]
    with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as file:
        chart = yaml.safe_load(file)
    assert chart["version"] == chart["appVersion"] == version
    container, = objects(build())["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "%s:%s" % (NAME, version)


def test_kubernetes_accepts_all_objects(monitored, tmp_path):
    """The Prometheus operator's schema accepts the PodMonitor."""
    path = tmp_path / "objects.yaml"
    (tmp_path / "schemas").mkdir()
    check = [find_tool("kubeconform"), "-strict", "-summary", "-schema-location",
             write_schemas(tmp_path / "schemas", pod_monitors()), str(path)]
    for text in monitored, template("--set", "podMonitor.enabled=true"):
        path.write_text(text)
        assert "Valid: 7, Invalid: 0, Errors: 0, Skipped: 0" in output_of(*check)
        for right, wrong in ("hostPID:", "hostPid:"), ("interval:", "every:"), ("30s", "30"):
            path.write_text(text.replace(right, wrong))
            assert subprocess.run(check, stdout=subprocess.DEVNULL).returncode == 1


def test_values_of_the_chart():
    chosen = objects(template("--set", "config.rate=49", "--set", "storePath=/srv/profiles", "--set",
                              "image.repository=registry/pybpfprof", "--set", "image.tag=1", "--set",
                              "imagePullSecrets[0].name=key", "--set", "priority=7"))
    pod = chosen["DaemonSet"]["spec"]["template"]["spec"]
    assert yaml.safe_load(chosen["ConfigMap"]["data"]["agent.yaml"])["rate"] == 49
    assert pod["volumes"][1]["hostPath"]["path"] == "/srv/profiles"
    assert pod["containers"][0]["image"] == "registry/pybpfprof:1"
    assert pod["imagePullSecrets"] == [{"name": "key"}]
    assert chosen["PriorityClass"]["value"] == 7


def test_off_is_off(tmp_path):
    """Although Helm reads the word as a boolean."""
    keys = "cpu-budget", "kubernetes", "listen", "memory-limit"
    values = tmp_path / "values.yaml"
    values.write_text("config: {quiet: false, %s}\n" % ", ".join(key + ": off" for key in keys))
    said = yaml.safe_load(objects(template("-f", str(values)))["ConfigMap"]["data"]["agent.yaml"])
    assert {key: said[key] for key in keys} == dict.fromkeys(keys, "off")
    assert said["quiet"] is False


def is_refused(*words):
    with pytest.raises(AssertionError, match="don't meet the specifications of the schema"):
        template(*words)


@pytest.mark.parametrize("value", ["config.rat=3", "tolerationz=3", "image.tagg=1",
                                   "podMonitor.enable=true", "priority=high", "podNames=yes",
                                   "config.listen=true", "config.rate=fast",
                                   "config.relabel[0].regexp=x"])
def test_mistakes_are_refused(value):
    is_refused("--set", value)


@pytest.mark.parametrize("config", ["node: no", "comm: [worker, y]", "store-age: 1.10",
                                    "relabel: [{source_labels: [comm], regex: off, action: drop}]"])
def test_words_that_are_no_strings_to_helm_are_refused(config, tmp_path):
    """Helm reads them as booleans or numbers.  Quoted, they reach the agent as they are."""
    values = tmp_path / "values.yaml"
    values.write_text("config: {%s}\n" % config)
    is_refused("-f", str(values))
    quoted = re.sub(r"\b(no|y|off|1\.10)\b", r'"\1"', config)
    values.write_text("config: {%s}\n" % quoted)
    said = yaml.safe_load(objects(template("-f", str(values)))["ConfigMap"]["data"]["agent.yaml"])
    wanted = yaml.safe_load(quoted)
    assert {key: said[key] for key in wanted} == wanted


def test_the_chart_knows_the_agents_options(binary, tmp_path):
    with open(os.path.join(CHART, "values.schema.json"), encoding="utf-8") as file:
        options = json.load(file)["properties"]["config"]["properties"]
    known = output_of(binary, "agent", "--store", str(tmp_path), "--print-config")
    assert sorted(options) == sorted(re.findall(r"(?m)^(?:# )?([\w-]+):", known))
    rule = dict.fromkeys(options["relabel"]["items"]["properties"], "x")
    rule.update(source_labels=["comm"], action="replace")
    output_of(binary, "agent", "--store", str(tmp_path), "--relabel", json.dumps(rule),
              "--print-config")


@pytest.fixture
def with_rate(tmp_path):
    """{tool: build(RATE)}: build returns the objects with that rate, as YAML."""
    def build_with(rate):
        folder = tmp_path / str(rate)
        shutil.copytree(BASE, folder)
        text = (folder / "agent.yaml").read_text(encoding="utf-8")
        (folder / "agent.yaml").write_text(re.sub("(?m)^rate: .*$", "rate: %d" % rate, text))
        return build(folder)
    return {"kustomize": build_with, "helm": lambda rate: template("--set", "config.rate=%d" % rate)}


@pytest.mark.parametrize("tool", ["kustomize", "helm"])
def test_a_changed_configuration_replaces_the_pods(tool, with_rate):
    first, second = (objects(with_rate[tool](rate)) for rate in (19, 49))
    assert yaml.safe_load(second["ConfigMap"]["data"]["agent.yaml"])["rate"] == 49
    first, second = (one["DaemonSet"]["spec"]["template"] for one in (first, second))
    assert first != second


def test_capabilities(tmp_path):
    assert Pod(objects(build()), tmp_path).capabilities == CAPABILITIES


@pytest.mark.parametrize("component, value, capability", [
    ("sys-admin", "sysAdmin", "sys_admin"), ("syslog", "syslog", "syslog")])
def test_more_capabilities_can_be_added(component, value, capability, customized, tmp_path):
    text = customized(component)
    check_same(text, template("--set", value + "=true"))
    assert Pod(objects(text), tmp_path).capabilities == CAPABILITIES | {capability}


@pytest.fixture(scope="module")
def image(binary, tmp_path_factory):
    """The root of an image with this binary; test_image.py makes a whole one."""
    root = str(tmp_path_factory.mktemp("image") / "root")
    output_of(os.path.join(ROOT, "deploy", "image-root.sh"), binary, root)
    return root


@pytest.fixture
def busy(any_python, target):
    return start_busy(any_python, target)


def test_the_agent_works_in_its_pod(image, require, tmp_path, busy, profile):
    """It has only the image's files, and profiles the host's processes."""
    pod = Pod(objects(build()), tmp_path)
    said = run_beside(pod, require, image, busy)
    assert "cannot" not in said, said
    assert samples_in_leaf(profile, pod) > 10


def test_other_pods_are_identified(image, require, tmp_path, any_python, target):
    """The cgroup of a process names its pod.  The agent can read it from its own container."""
    (tmp_path / "other").mkdir()
    other = Container(require, tmp_path / "other", "/", [any_python.path, "/programs/busy.py"])
    pod = Pod(objects(build()), tmp_path)
    try:
        other.start(target)
        with running(pod, require, image) as agent:
            wait_for(lambda: (other.name, other.pod) in {
                (found.get("container_id"), found.get("pod_uid")) for found in label_sets(Store(pod.store))})
            assert agent.stop()[0] == 0
    finally:
        other.end()


def test_pods_are_named(image, require, tmp_path, any_python, target, cluster):  # noqa: F811
    """By the API server, with the credentials that the kubelet gives the pod.  Here the pod has this
    machine's network."""
    (tmp_path / "other").mkdir()
    other = Container(require, tmp_path / "other", "/", [any_python.path, "/programs/busy.py"])
    pod = Pod(objects(build()), tmp_path)
    pod.server = cluster(pod_object(other.pod, "web-0", labels={"app": "web"}))
    pod.namespaces.remove("network")
    try:
        other.start(target)
        with running(pod, require, image) as agent:
            wait_for(lambda: is_named(Store(pod.store), other, "web-0"))
            status, said = agent.stop()
    finally:
        other.end()
    assert status == 0 and "cannot read the names of pods" not in said, said
    assert pod.server.lists()[0].query["fieldSelector"] == "spec.nodeName=" + NODE
    found = labels_of(Store(pod.store), other)[-1]
    assert (found["pod"], found["namespace"], found["service_name"]) == ("web-0", "shop", "web")


def test_it_pushes_with_a_secret(image, require, tmp_path, busy, backend, authority):  # noqa: F811
    """As in docs/deploy.md: the secret has a token and the backend's certificate authority."""
    ours = authority("ours")
    server = backend("pyroscope", ours.sign("IP:127.0.0.1"))
    kinds = objects(template("--set", "secretName=backend", "--set",
                             "config.push[0]=%s token=%s/token ca=%s/ca.crt" % (
                                 server.url(), SECRETS, SECRETS)))
    pod = Pod(kinds, tmp_path)
    pod.secret = {"token": "of-the-secret\n", "ca.crt": Path(ours.certificate).read_text(encoding="ascii")}
    pod.namespaces.remove("network")
    said = run_beside(pod, require, image, busy)
    assert own_service() in {row[0] for row in server.rows()}, said
    assert {request.headers["Authorization"] for request in server.seen} == {"Bearer of-the-secret"}


def test_prometheus_and_the_kubelet_are_answered(monitored, image, require, tmp_path):
    kinds = objects(monitored)
    pod = Pod(kinds, tmp_path)
    endpoint, = kinds["PodMonitor"]["spec"]["podMetricsEndpoints"]
    port, = pod.agent["ports"]
    assert endpoint["port"] == port["name"]
    with running(pod, require, image) as agent:
        enter = [require("nsenter"), "-t", str(agent.pid), "-n"]
        # Not the loopback address, which is open anyway.
        output_of(*enter, require("ip"), "address", "add", ADDRESS + "/32", "dev", "lo")
        answers = {path: output_of(*enter, sys.executable, "-c", GET,
                                   "http://%s:%d%s" % (ADDRESS, port["containerPort"], path))
                   for path in (endpoint["path"], pod.agent["livenessProbe"]["httpGet"]["path"],
                                pod.agent["readinessProbe"]["httpGet"]["path"])}
    assert "\npybpfprof_samples_total{" in answers.pop("/metrics")
    assert set(answers.values()) == {"ok\n"}


@pytest.mark.parametrize("lacking", sorted(CAPABILITIES))
def test_each_capability_is_necessary(lacking, image, require, tmp_path):
    """Without any one of them, the agent does not start, and names the missing one."""
    pod = Pod(objects(build()), tmp_path)
    pod.capabilities.remove(lacking)
    with pytest.raises(AssertionError, match="CAP_" + lacking.upper()):
        with running(pod, require, image):
            pass
