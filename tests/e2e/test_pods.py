# SPDX-License-Identifier: BSD-2-Clause
"""Pod names from the API server become labels, and a misbehaving API server delays nothing else."""

import json
import os
import re
import shutil
import signal
import threading

import pytest

from agents import end
from api_servers import ApiServer, pod
from conftest import children_of, wait_for
from containers import Container
from test_agent_http import LISTEN, Site
from push_servers import authority  # noqa: F401 (a fixture)

WINDOW_S = 0.2
WINDOW = ("--window", "%gs" % WINDOW_S, "-r", "199", "--node", "a-node")


@pytest.fixture
def cluster(authority, tmp_path):  # noqa: F811
    """cluster(POD...): an ApiServer; its `credentials` is the folder with the token and the CA."""
    ours = authority("ours")
    folder, ended, running = tmp_path / "credentials", threading.Event(), []
    folder.mkdir()
    (folder / "token").write_text("first\n")
    shutil.copy(ours.certificate, folder / "ca.crt")

    def start(*pods, names="IP:127.0.0.1", signer=ours):
        server = ApiServer(ended, signer.sign(names), *pods)
        server.credentials = folder
        running.append(server)
        return server
    yield start
    ended.set()
    for server in running:
        server.end()


@pytest.fixture
def contained(require, tmp_path, any_python, target):
    """contained(): a busy Container in a pod of its own."""
    running = []

    def start():
        folder = tmp_path / ("container-%d" % len(running))
        folder.mkdir()
        running.append(Container(require, folder, "/", [any_python.path, "/programs/busy.py"]))
        running[-1].start(target)
        return running[-1]
    yield start
    for one in running:
        one.end()


@pytest.fixture
def watching(agent):
    """watching(SERVER, ARGUMENT...): an agent that watches the server's pods."""
    return lambda server, *arguments: agent(
        *WINDOW, "--kubernetes", server.url, "--kubernetes-credentials", str(server.credentials),
        *arguments)


def labels_of(store, container):
    """All label sets of the container's samples, in order."""
    if not os.path.exists(store.path):
        return []
    rows = store.select("SELECT labels FROM label_sets ORDER BY id")
    found = [json.loads(text) for (text,) in rows]
    return [labels for labels in found if labels.get("container_id") == container.name]


def is_named(store, container, name):
    return any(labels.get("pod") == name for labels in labels_of(store, container))


def test_pods_have_names(cluster, contained, watching, profile, store, tmp_path):
    one = contained()
    server = cluster(pod(one.pod, "web-7d-x", containers=[("main", one.name)],
                         labels={"app": "web"}))
    run = watching(server)
    wait_for(lambda: is_named(store, one, "web-7d-x"))
    end(run)
    assert run.status == 0, run.stderr
    labels = labels_of(store, one)[-1]
    assert labels["namespace"] == "shop" and labels["service_name"] == "web"
    assert labels["pod_uid"] == one.pod and labels["node"] == "a-node"
    assert not any(name.startswith("__") for name in labels)
    listed, watched = server.asked[:2]
    assert listed.path == watched.path == "/api/v1/pods"
    assert listed.query == {"fieldSelector": "spec.nodeName=a-node", "resourceVersion": "0"}
    assert watched.query.items() >= {"fieldSelector": "spec.nodeName=a-node", "watch": "1",
                                     "resourceVersion": "10"}.items()
    assert len(server.lists()) == 1
    # The page's process menu shows the pod as well.
    path = tmp_path / "page.html"
    read = profile.attempt("report", "--store", store.folder, "-o", path, "--label",
                           "container_id=" + one.name)
    assert read.status == 0, read.stderr
    page = json.loads(re.search('id="profile">(.*?)</script>', path.read_text(encoding="utf-8"),
                                re.DOTALL).group(1))
    assert "shop/web-7d-x" in {page["strings"][text] for text in page["processes"][8::11]}


def test_pods_are_added_changed_and_deleted(cluster, contained, watching, store):
    """A pod added later gets its name. A deleted one keeps it for windows with its samples."""
    server = cluster()
    run = watching(server)
    wait_for(server.watches)
    first, second = contained(), contained()
    server.tell("ADDED", pod(first.pod, "first", "11"))
    server.tell("MODIFIED", pod(first.pod, "first", "12", annotations={
        "pyroscope.io/service_name": "by-annotation"}, labels={"app": "by-label"}))
    # The UID does not match: this pod is found by its container alone.
    server.tell("ADDED", pod("another", "second", "13", [("main", second.name)]))
    server.tell("BOOKMARK", {"metadata": {"resourceVersion": "20"}})
    wait_for(lambda: is_named(store, first, "first") and is_named(store, second, "second"))
    server.tell("DELETED", pod(first.pod, "first", "21", labels={"app": "by-label"}))
    server.events.put(None)
    wait_for(lambda: len(server.watches()) == 2)
    count, windows = len(labels_of(store, first)), len(store.windows())
    wait_for(lambda: len(store.windows()) > windows + 3)
    end(run)
    assert labels_of(store, first)[-1]["pod"] == "first"
    assert any(labels["service_name"] == "by-annotation" for labels in labels_of(store, first))
    assert labels_of(store, second)[-1]["service_name"] == "main"
    assert len(labels_of(store, first)) <= count + 1
    # The new watch continues where the last one ended. Nothing is listed again.
    assert server.watches()[1].query["resourceVersion"] == "21"
    assert len(server.lists()) == 1


def test_rules_see_pods(cluster, contained, watching, store):
    one = contained()
    server = cluster(pod(one.pod, "web-0", containers=[("main", one.name)], labels={"tier/x": "a"}))
    rules = [{"source_labels": ["__meta_kubernetes_pod_container_name",
                                "__meta_kubernetes_pod_container_image"], "target_label": "what"},
             {"action": "labelmap", "regex": "__meta_kubernetes_pod_label_(.+)"},
             {"source_labels": ["pod"], "regex": "", "action": "drop"}]
    run = watching(server, *(word for rule in rules for word in ("--relabel", json.dumps(rule))))
    wait_for(lambda: is_named(store, one, "web-0"))
    end(run)
    labels = labels_of(store, one)[-1]
    assert labels["what"] == "main;main:1" and labels["tier_x"] == "a"
    rows = store.select("SELECT labels FROM label_sets")
    assert all("pod" in json.loads(text) for (text,) in rows)


def test_a_renewed_token_is_used(cluster, contained, watching, store):
    one = contained()
    server = cluster(pod(one.pod, "one"))
    run = watching(server)
    wait_for(lambda: is_named(store, one, "one"))
    (server.credentials / "token").write_text("second\n")
    server.tokens = {"second"}
    server.events.put(None)
    wait_for(lambda: len(server.watches()) == 2)
    end(run)
    assert [asked.token for asked in server.watches()] == ["first", "second"]
    assert "cannot read the names of pods" not in run.stderr


def test_an_expired_watch_lists_again(cluster, contained, watching, store):
    one = contained()
    server = cluster()
    run = watching(server)
    wait_for(server.watches)
    server.pods, server.version = [pod(one.pod, "one")], 99
    server.tell("ERROR", {"kind": "Status", "code": 410})
    wait_for(lambda: is_named(store, one, "one"))
    wait_for(lambda: len(server.watches()) == 2)
    end(run)
    assert "resourceVersion" not in server.lists()[1].query
    assert server.watches()[1].query["resourceVersion"] == "99"
    assert "cannot read the names of pods" not in run.stderr


def hang(handler, asked):
    handler.server.backend.ended.wait(60)
    return True


def hang_within(handler, asked):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"items": [')
    return hang(handler, asked)


def flood(handler, asked):
    handler.begin()
    try:
        while not handler.server.backend.ended.is_set():
            handler.tell(b"[" * 65536)
    except OSError:
        pass
    return True


def refuse(status):
    def answer(handler, asked):
        handler.reply(status, "application/json", b"{}")
        return True
    return answer


def garbage(handler, asked):
    handler.reply(200, "application/json", b"\x00\xff<html>")
    return True


def reset(handler, asked):
    handler.reset()
    return True


def watch_garbage(handler, asked):
    if "watch" not in asked.query:
        return False
    handler.begin()
    handler.tell(b"garbage\n")
    handler.tell(b"")
    return True


def watch_flood(handler, asked):
    return "watch" in asked.query and flood(handler, asked)


@pytest.mark.prove("push")
@pytest.mark.parametrize("answer,says", [
    (hang, None), (hang_within, None), (flood, "names of pods.*exceeds 16 MiB"),
    (garbage, "not a list of pods"), (reset, "cannot read the names of pods"),
    (refuse(403), "403.*ClusterRole"), (refuse(401), "token"), (refuse(500), "answers 500"),
    (watch_garbage, "not a stream of pod events"),
    (watch_flood, "names of pods.*exceeds 4 MiB")],
    ids=["hang", "hang-within", "flood", "garbage", "reset", "403", "401", "500", "watch-garbage",
         "watch-flood"])
def test_a_bad_server_delays_nothing(answer, says, cluster, contained, watching, store, measured):
    """Names arrive once the server recovers, unless the agent still waits for a hung answer."""
    see_through(answer, says, cluster, contained, watching, store)
    ends = [row[0] for row in store.select("SELECT end_ns FROM windows ORDER BY id")]
    gaps = [(late - early) / 1e9 for early, late in zip(ends[:-2], ends[1:-1])]
    measured("longest window of %g s beside a bad API server" % WINDOW_S, "%.2f s" % max(gaps), "< 15 s more")
    assert max(gaps) < WINDOW_S + 15, gaps


@pytest.mark.parametrize("answer,says", [(hang_within, None), (refuse(500), "500"), (watch_flood, "4 MiB")],
                         ids=["hang-within", "500", "watch-flood"])
def test_a_bad_server_does_not_stop_the_store(answer, says, cluster, contained, watching, store):
    see_through(answer, says, cluster, contained, watching, store)


def see_through(answer, says, cluster, contained, watching, store):
    """Runs an agent against a server that gives ANSWER. The agent's message must match SAYS, if given."""
    one = contained()
    server = cluster(pod(one.pod, "one"))
    server.answer = answer
    run = watching(server)
    wait_for(lambda: len(store.windows()) >= 6 and labels_of(store, one))
    if says:
        server.answer = None
        wait_for(lambda: is_named(store, one, "one"))
    end(run)
    assert run.status == 0, run.stderr
    assert len(re.findall("cannot read the names of pods", run.stderr)) == (1 if says else 0), run.stderr
    assert not says or re.search(says, run.stderr), run.stderr


@pytest.mark.parametrize("names,trusted", [("DNS:elsewhere.test", True), ("IP:127.0.0.1", False)],
                         ids=["wrong-name", "wrong-authority"])
def test_a_server_with_a_bad_certificate_gets_no_request(names, trusted, cluster, contained, watching, store,
                                           authority):  # noqa: F811
    one = contained()
    server = cluster(pod(one.pod, "one"), names=names,
                     **({} if trusted else {"signer": authority("theirs")}))
    run = watching(server)
    wait_for(lambda: len(store.windows()) >= 4)
    end(run)
    assert not server.asked
    assert re.search("names of pods.*SSL.*certificate|names of pods.*SSL peer", run.stderr), run.stderr
    assert not is_named(store, one, "one")


def test_a_missing_token_is_reported(cluster, watching, store):
    server = cluster()
    (server.credentials / "token").unlink()
    run = watching(server)
    wait_for(lambda: len(store.windows()) >= 2)
    (server.credentials / "token").write_text("first")
    wait_for(server.watches)
    end(run)
    assert re.search("cannot read \\S*token", run.stderr)


def test_without_a_cluster(agent, store):
    """Without a cluster the agent does not mention pods."""
    run = agent(*WINDOW)
    wait_for(lambda: len(store.windows()) >= 2)
    end(run)
    assert "pods" not in run.stderr
    assert run.status == 0


@pytest.fixture
def in_cluster(agent):
    """in_cluster(SERVER): an agent that finds it by the variables that the kubelet sets in containers."""
    def start(server):
        address, _, port = server.url.rpartition("//")[2].partition(":")
        return agent(
            *WINDOW, "--kubernetes-credentials", str(server.credentials),
            env=dict(os.environ, KUBERNETES_SERVICE_HOST=address, KUBERNETES_SERVICE_PORT=port))
    return start


def test_in_a_cluster(cluster, contained, in_cluster, store):
    one = contained()
    server = cluster(pod(one.pod, "one"))
    run = in_cluster(server)
    wait_for(lambda: is_named(store, one, "one"))
    end(run)
    assert "has no pods on node" not in run.stderr


def test_no_pod_on_the_agents_own_node_is_reported(cluster, in_cluster):
    server = cluster()
    run = in_cluster(server)
    wait_for(server.watches)
    server.tell("ERROR", {"kind": "Status", "code": 410})
    wait_for(lambda: len(server.watches()) == 2)
    end(run)
    assert len(re.findall("has no pods on node 'a-node'.*`node`", run.stderr)) == 1, run.stderr


def test_another_node_may_have_no_pods(cluster, watching):
    server = cluster()
    run = watching(server)
    wait_for(server.watches)
    end(run)
    assert "has no pods on node" not in run.stderr


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return dict(line.split(":\t", 1) for line in file.read().splitlines())


def asking_process(run):
    """(keeper, watcher): the process that watches pods, and the one that restarts it."""
    keeper, = children_of(run.process.pid)
    one, = children_of(keeper)
    return keeper, one


def test_the_watcher_has_no_privileges(cluster, watching, store):
    """The watcher and its keeper have no capabilities, and end even if the agent is killed."""
    server = cluster()
    run = watching(server)
    wait_for(server.watches)
    both = asking_process(run)
    for each in both:
        status = status_of(each)
        assert {status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {"0" * 16}
        # Only stdio, its end of the socket and libcurl's descriptors are expected.
        links = [os.readlink("/proc/%d/fd/%s" % (each, name))
                 for name in os.listdir("/proc/%d/fd" % each)]
        assert not any("bpf" in link or "perf_event" in link for link in links)
    assert status["Name"] == "pybpfprof-pods"
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    run.process.kill()
    run.finish()
    wait_for(lambda: not any(os.path.exists("/proc/%d" % each) for each in both))


def test_a_killed_watcher_is_replaced(cluster, contained, watching, store):
    """A new watcher takes over. Names known before stay."""
    one, two = contained(), contained()
    server = cluster(pod(one.pod, "one"))
    run = watching(server, *LISTEN)
    wait_for(lambda: is_named(store, one, "one"))
    server.pods.append(pod(two.pod, "two"))
    os.kill(asking_process(run)[1], signal.SIGKILL)
    wait_for(lambda: is_named(store, two, "two"))
    metrics = Site(run).metrics()
    end(run)
    assert metrics["pybpfprof_pods_restarts_total"][""] == metrics["pybpfprof_pods_current"][""] == 1
    assert metrics["pybpfprof_pods_cpu_seconds_total"][""] > 0
    assert labels_of(store, one)[-1]["pod"] == "one"
    assert len(re.findall("watches pods was killed by signal 9", run.stderr)) == 1, run.stderr
