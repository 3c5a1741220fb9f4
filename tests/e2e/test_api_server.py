# SPDX-License-Identifier: BSD-2-Clause
"""With a real API server of Kubernetes: it takes the manifests and the chart, and tells the agent of
pods, as the service account that these make.

`make test-backends` builds it first; without that, this is skipped.
"""

import os
import shutil
import sys

import pytest

from agents import end, wait_for
from conftest import ROOT
from pods import NAME, NODE, build, yaml
from test_kubernetes import template
from test_pods import WINDOW, contained, is_named, labels_of  # noqa: F401 (a fixture among them)

sys.path.insert(0, os.path.join(ROOT, "tests", "backends"))
import kube_servers  # noqa: E402

pytestmark = pytest.mark.deployed

# What each token may do anyway.
OF_EVERYBODY = {("authorization.k8s.io", "selfsubjectaccessreviews", "create"),
                ("authorization.k8s.io", "selfsubjectrulesreviews", "create"),
                ("authentication.k8s.io", "selfsubjectreviews", "create")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster with the namespaces of the agent and of a shop."""
    if not kube_servers.is_there():
        pytest.skip("no kube-apiserver here: make test-backends builds it")
    server = kube_servers.Kubernetes(tmp_path_factory.mktemp("kubernetes"))
    try:
        for name in NAME, "shop":
            server.make_namespace(name)
        yield server
    finally:
        server.end()


def objects(text):
    """All but the operator's own kind, in the agent's namespace."""
    found = [one for one in yaml.safe_load_all(text) if one and one["kind"] != "PodMonitor"]
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
    "--set", "podMonitor.enabled=true", "--set", "podNames=false")],
    ids=["manifests", "chart", "chart-with-more"])
def test_it_would_take_all(said, cluster):
    for one in objects(said()):
        status, answer = cluster.apply(one, dry_run=True)
        assert status in (200, 201), answer


@pytest.mark.parametrize("right,wrong", [("hostPID:", "hostPid:"), ("IfNotPresent", "Sometimes"),
                                         ("- ALL", "- [ALL]")])
def test_it_would_not_take_mistakes(right, wrong, cluster):
    """So that it counts that it takes the rest."""
    one, = (each for each in objects(build().replace(right, wrong)) if each["kind"] == "DaemonSet")
    status, answer = cluster.apply(one, dry_run=True)
    assert 400 <= status <= 500, answer


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
