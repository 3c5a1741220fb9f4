# SPDX-License-Identifier: BSD-2-Clause
"""With a real API server of Kubernetes: it takes the manifests and the chart, and tells the agent of
pods, as the service account that these make.

`make prove PARTS=push` builds it first; without that, this is skipped.
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
# What each token may do anyway.
OF_EVERYBODY = {("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
                ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
                ("authentication.k8s.io", "selfsubjectreviews", "create")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster with the namespaces of the agent and of a shop, and what Prometheus' operator knows."""
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
    """All, in the agent's namespace."""
    found = [one for one in yaml.safe_load_all(text) if one]
    for one in found:
        if one["kind"] in kube_servers.NAMESPACED:
            one["metadata"].setdefault("namespace", NAME)
    return found


@pytest.fixture(scope="module")
def account(cluster, tmp_path_factory):
    """The folder that the kubelet gives the agent's pod: as the chart has it."""
    for one in objects(template()):
        cluster.make(one)
    folder = tmp_path_factory.mktemp("account")
    (folder / "token").write_text(cluster.token_of(NAME, NAME))
    shutil.copy(os.path.join(cluster.certificates, "apiserver.crt"), folder / "ca.crt")
    return folder


@pytest.mark.parametrize("said", [build, template, lambda: template(
    "--set", "podMonitor.enabled=true,podNames=false,secretName=backend,sysAdmin=true")],
    ids=["manifests", "chart", "chart-with-more"])
def test_it_would_take_all(said, cluster):
    for one in objects(said()):
        status, answer = cluster.apply(one, dry_run=True)
        assert status in (200, 201), answer


@pytest.mark.parametrize("right,wrong", [("hostPID:", "hostPid:"), ("IfNotPresent", "Sometimes"),
                                         ("- ALL", "- [ALL]"), ("interval:", "every:")])
def test_it_would_not_take_mistakes(right, wrong, cluster):
    """So that it counts that it takes the rest."""
    text = template("--set", "podMonitor.enabled=true")
    one, = (each for each in objects(text.replace(right, wrong)) if each not in objects(text))
    status, answer = cluster.apply(one, dry_run=True)
    assert 400 <= status <= 500, answer


@pytest.fixture
def helm(cluster):
    """helm(NAMESPACE, WORD...): what it does with that cluster."""
    def run(namespace, *words):
        return output_of(find_tool("helm"), *words, "--namespace", namespace, "--kube-apiserver",
                         cluster.url, "--kube-token", kube_servers.ADMINISTRATOR, "--kube-ca-file",
                         os.path.join(cluster.certificates, "apiserver.crt"))
    return run


def names_of(cluster, *namespaces):
    """{(kind, namespace or None, name)} of all that the chart could have made, or helm."""
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
    """What the agent's pods there would have."""
    daemon_set = cluster.ask("GET", "/apis/apps/v1/namespaces/%s/daemonsets/%s" % (
        namespace, NAME))[1]
    name = daemon_set["spec"]["template"]["spec"]["priorityClassName"]
    return cluster.ask("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/" + name)[1]["value"]


def test_a_release_lives_beside_another(cluster, helm):
    """Of the same name in another namespace, until either goes."""
    spaces = "one", "two"
    for space in spaces:
        cluster.make_namespace(space)
    before = names_of(cluster, *spaces)
    for space in spaces:
        helm(space, "install", NAME, CHART)
    both = names_of(cluster, *spaces)
    assert priority_of(cluster, "one") == priority_of(cluster, "two") == 1000
    # A class keeps its value, whatever is asked for.
    helm("one", "upgrade", NAME, CHART, "--set", "priority=2000")
    helm("two", "upgrade", NAME, CHART, "--set", "priority=-1000000")
    assert (priority_of(cluster, "one"), priority_of(cluster, "two")) == (2000, -1000000)
    # Helm keeps what it did in a Secret each time.
    assert len(names_of(cluster, *spaces)) == len(both) + 2
    helm("two", "uninstall", NAME)
    assert priority_of(cluster, "one") == 2000
    assert ("clusterroles", None, "one." + NAME) in names_of(cluster, *spaces)
    helm("one", "uninstall", NAME)
    assert names_of(cluster, *spaces) == before


def test_the_account_may_nothing_else(cluster, account):
    token = (account / "token").read_text()
    assert cluster.rules_of(token) - OF_EVERYBODY == {("", "pods", "list"), ("", "pods", "watch")}
    for path in "/api/v1/secrets", "/api/v1/nodes", "/api/v1/namespaces/shop/pods/web-0":
        assert cluster.ask("GET", path, token=token)[0] == 403
    assert cluster.ask("GET", "/api/v1/pods", token=token)[0] == 200


def test_it_names_pods(cluster, account, contained, agent, store):  # noqa: F811
    """Those of this node that are there, and those that come later."""
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
