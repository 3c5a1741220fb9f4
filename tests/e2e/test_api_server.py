# SPDX-License-Identifier: BSD-2-Clause
"""Tests with a real Kubernetes API server.  It accepts the manifests and the chart, and reports pods to the
agent, which uses the service account from the chart.

`make prove PARTS=push` builds the server first.  The tests are skipped without it.
"""

import os
import shutil
import sys

import pytest

from agents import end
from conftest import ROOT, wait_for
from deploy_tools import find_tool
from pods import NAME, NODE, build, output_of, pod_monitors, yaml
from test_kubernetes import CHART, template
from test_pods import WINDOW, contained, is_named, labels_of  # noqa: F401 (a fixture among them)

sys.path.insert(0, os.path.join(ROOT, "tests", "backends"))
import kube_servers  # noqa: E402

pytestmark = pytest.mark.prove("push")

MONITORING = "monitoring.coreos.com/v1"
# Rules that every token has.
OF_EVERYBODY = {("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
                ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
                ("authentication.k8s.io", "selfsubjectreviews", "create")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster with the namespaces of the agent and of a shop, and with the kind PodMonitor."""
    if not kube_servers.is_there():
        pytest.skip("no kube-apiserver here: make prove PARTS=push builds it")
    server = kube_servers.Kubernetes(tmp_path_factory.mktemp("kubernetes"))
    try:
        for name in NAME, "shop":
            server.make_namespace(name)
        server.make(pod_monitors())
        wait_for(lambda: server.ask("GET", "/apis/" + MONITORING)[0] == 200)
        yield server
    finally:
        server.end()


def objects(text):
    """All objects of TEXT, in the agent's namespace."""
    found = [one for one in yaml.safe_load_all(text) if one]
    for one in found:
        if one["kind"] in kube_servers.NAMESPACED:
            one["metadata"].setdefault("namespace", NAME)
    return found


@pytest.fixture(scope="module")
def account(cluster, tmp_path_factory):
    """The folder of credentials that the kubelet would give to the chart's pod."""
    for one in objects(template()):
        cluster.make(one)
    folder = tmp_path_factory.mktemp("account")
    (folder / "token").write_text(cluster.token_of(NAME, NAME))
    shutil.copy(os.path.join(cluster.certificates, "apiserver.crt"), folder / "ca.crt")
    return folder


@pytest.mark.parametrize("said", [build, template, lambda: template(
    "--set", "podMonitor.enabled=true,podNames=false,secretName=backend,sysAdmin=true,syslog=true")],
    ids=["manifests", "chart", "chart-with-more"])
def test_the_server_accepts_all_objects(said, cluster):
    for one in objects(said()):
        status, answer = cluster.apply(one, dry_run=True)
        assert status in (200, 201), answer


@pytest.mark.parametrize("right,wrong", [("hostPID:", "hostPid:"), ("IfNotPresent", "Sometimes"),
                                         ("- ALL", "- [ALL]"), ("interval:", "every:")])
def test_the_server_rejects_mistakes(right, wrong, cluster):
    """Otherwise accepting the objects would prove nothing."""
    text = template("--set", "podMonitor.enabled=true")
    one, = (each for each in objects(text.replace(right, wrong)) if each not in objects(text))
    status, answer = cluster.apply(one, dry_run=True)
    assert 400 <= status <= 500, answer


@pytest.fixture
def helm(cluster):
    """helm(NAMESPACE, WORD...): runs helm on that cluster."""
    def run(namespace, *words):
        return output_of(find_tool("helm"), *words, "--namespace", namespace, "--kube-apiserver",
                         cluster.url, "--kube-token", kube_servers.ADMINISTRATOR, "--kube-ca-file",
                         os.path.join(cluster.certificates, "apiserver.crt"))
    return run


def names_of(cluster, *namespaces):
    """{(kind, namespace or None, name)} of all objects of the kinds that the chart or helm makes."""
    everywhere = ("rbac.authorization.k8s.io/v1/clusterroles",
                  "rbac.authorization.k8s.io/v1/clusterrolebindings",
                  "scheduling.k8s.io/v1/priorityclasses")
    places = ["/apis/" + kind for kind in everywhere]
    for space in namespaces:
        places += ["/apis/apps/v1/namespaces/%s/daemonsets" % space]
        places += ["/api/v1/namespaces/%s/%s" % (space, kind)
                   for kind in ("configmaps", "secrets", "serviceaccounts")]
    return {(place.rpartition("/")[2], one["metadata"].get("namespace"), one["metadata"]["name"])
            for place in places for one in cluster.ask("GET", place)[1]["items"]}


def priority_of(cluster, namespace):
    """The priority that the agent's pods would get in NAMESPACE."""
    daemon_set = cluster.ask("GET", "/apis/apps/v1/namespaces/%s/daemonsets/%s" % (
        namespace, NAME))[1]
    name = daemon_set["spec"]["template"]["spec"]["priorityClassName"]
    return cluster.ask("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/" + name)[1]["value"]


def test_a_release_lives_beside_another(cluster, helm):
    """Two releases with the same name in different namespaces; removing one leaves the other intact."""
    spaces = "one", "two"
    for space in spaces:
        cluster.make_namespace(space)
    before = names_of(cluster, *spaces)
    for space in spaces:
        helm(space, "install", NAME, CHART)
    both = names_of(cluster, *spaces)
    assert priority_of(cluster, "one") == priority_of(cluster, "two") == 1000
    # The value of a PriorityClass cannot change, so an upgrade needs a new class.
    helm("one", "upgrade", NAME, CHART, "--set", "priority=2000")
    helm("two", "upgrade", NAME, CHART, "--set", "priority=-1000000")
    assert (priority_of(cluster, "one"), priority_of(cluster, "two")) == (2000, -1000000)
    # Helm stores each revision in a Secret.
    assert len(names_of(cluster, *spaces)) == len(both) + 2
    helm("two", "uninstall", NAME)
    assert priority_of(cluster, "one") == 2000
    assert ("clusterroles", None, "one." + NAME) in names_of(cluster, *spaces)
    helm("one", "uninstall", NAME)
    assert names_of(cluster, *spaces) == before


def test_the_account_may_only_list_and_watch_pods(cluster, account):
    token = (account / "token").read_text()
    assert cluster.rules_of(token) - OF_EVERYBODY == {("", "pods", "list"), ("", "pods", "watch")}
    for path in "/api/v1/secrets", "/api/v1/nodes", "/api/v1/namespaces/shop/pods/web-0":
        assert cluster.ask("GET", path, token=token)[0] == 403
    assert cluster.ask("GET", "/api/v1/pods", token=token)[0] == 200


def test_it_names_pods(cluster, account, contained, agent, store):  # noqa: F811
    """The agent names existing and later pods of its own node only."""
    first, later, elsewhere = contained(), contained(), contained()
    cluster.make_pod("web-0", "shop", NODE, first.name, labels={"app": "web"})
    cluster.make_pod("far-0", "shop", "another-node", elsewhere.name)
    run = agent(*WINDOW, "--node", NODE, "--kubernetes", cluster.url, "--kubernetes-credentials",
                str(account))
    wait_for(lambda: is_named(store, first, "web-0"))
    cluster.make_pod("web-1", "shop", NODE, later.name, annotations={
        "resource.opentelemetry.io/service.name": "by-annotation"})
    wait_for(lambda: is_named(store, later, "web-1"))
    end(run)
    assert run.status == 0 and "(403)" not in run.stderr, run.stderr
    labels = [labels_of(store, one)[-1] for one in (first, later)]
    assert [one["service_name"] for one in labels] == ["web", "by-annotation"]
    assert {one["namespace"] for one in labels} == {"shop"}
    assert not any("pod" in one for one in labels_of(store, elsewhere))
