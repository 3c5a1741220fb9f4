# SPDX-License-Identifier: BSD-2-Clause
"""The names of pods: what the API server tells comes into the labels, and whatever it does delays
nothing else."""

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
from test_push import authority  # noqa: F401 (a fixture)

WINDOW_S = 0.2
WINDOW = ("--window", "%gs" % WINDOW_S, "-r", "199", "--node", "a-node")


@pytest.fixture
def cluster(authority, tmp_path):  # noqa: F811
    """cluster(POD...): an ApiServer, with the folder of what it takes to ask it."""
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
    """contained(): a Container of a pod of its own, which is busy."""
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
    """watching(SERVER, ARGUMENT...): an agent that asks it."""
    return lambda server, *arguments: agent(
        *WINDOW, "--kubernetes", server.url, "--kubernetes-credentials", str(server.credentials),
        *arguments)


def labels_of(store, container):
    """All sets of labels that its samples have, in order."""
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
    # As the page's menu of processes says it.
    path = tmp_path / "page.html"
    read = profile.attempt("report", "--store", store.folder, "-o", path, "--label",
                           "container_id=" + one.name)
    assert read.status == 0, read.stderr
    page = json.loads(re.search('id="profile">(.*?)</script>', path.read_text(encoding="utf-8"),
                                re.DOTALL).group(1))
    assert "shop/web-7d-x" in {page["strings"][text] for text in page["processes"][8::11]}


def test_what_becomes_of_pods_is_told(cluster, contained, watching, store):
    """One that comes later; one that goes keeps its name for the windows that have it."""
    server = cluster()
    run = watching(server)
    wait_for(server.watches)
    first, second = contained(), contained()
    server.tell("ADDED", pod(first.pod, "first", "11"))
    server.tell("MODIFIED", pod(first.pod, "first", "12", annotations={
        "pyroscope.io/service_name": "by-annotation"}, labels={"app": "by-label"}))
    # Known by a container alone.
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
    # It goes on where the last one ended, and nothing is listed again.
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


def test_a_token_is_renewed(cluster, contained, watching, store):
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


def test_an_old_watch_lists_anew(cluster, contained, watching, store):
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
    """Names come when it has become a good one, but for one that is still waited for."""
    see_through(answer, says, cluster, contained, watching, store)
    ends = [row[0] for row in store.select("SELECT end_ns FROM windows ORDER BY id")]
    gaps = [(late - early) / 1e9 for early, late in zip(ends[:-2], ends[1:-1])]
    measured("longest window of %g s beside a bad API server" % WINDOW_S, "%.2f s" % max(gaps), "< 15 s more")
    assert max(gaps) < WINDOW_S + 15, gaps


@pytest.mark.parametrize("answer,says", [(hang_within, None), (refuse(500), "500"), (watch_flood, "4 MiB")],
                         ids=["hang-within", "500", "watch-flood"])
def test_a_bad_server_keeps_nothing_from_the_store(answer, says, cluster, contained, watching, store):
    see_through(answer, says, cluster, contained, watching, store)


def see_through(answer, says, cluster, contained, watching, store):
    """An agent beside a server that gives this ANSWER, of which it SAYS something."""
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
def test_who_is_not_proved_is_told_nothing(names, trusted, cluster, contained, watching, store,
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


def test_without_a_token(cluster, watching, store):
    server = cluster()
    (server.credentials / "token").unlink()
    run = watching(server)
    wait_for(lambda: len(store.windows()) >= 2)
    (server.credentials / "token").write_text("first")
    wait_for(server.watches)
    end(run)
    assert re.search("cannot read \\S*token", run.stderr)


def test_where_there_is_none(agent, store):
    """Nothing is asked, and nothing said."""
    run = agent(*WINDOW)
    wait_for(lambda: len(store.windows()) >= 2)
    end(run)
    assert "pods" not in run.stderr
    assert run.status == 0


@pytest.fixture
def in_cluster(agent):
    """in_cluster(SERVER): an agent that finds it by what the kubelet tells every container."""
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


def test_the_agents_own_node_has_a_pod(cluster, in_cluster):
    server = cluster()
    run = in_cluster(server)
    wait_for(server.watches)
    server.tell("ERROR", {"kind": "Status", "code": 410})
    wait_for(lambda: len(server.watches()) == 2)
    end(run)
    assert len(re.findall("has no pods on node 'a-node'.*`node`", run.stderr)) == 1, run.stderr


def test_another_node_may_have_none(cluster, watching):
    server = cluster()
    run = watching(server)
    wait_for(server.watches)
    end(run)
    assert "has no pods on node" not in run.stderr


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        return dict(line.split(":\t", 1) for line in file.read().splitlines())


def asking_process(run):
    """It is kept running by another."""
    keeper, = children_of(run.process.pid)
    one, = children_of(keeper)
    return keeper, one


def test_what_asks_has_no_privileges(cluster, watching, store):
    """And ends with the agent, however that ends."""
    server = cluster()
    run = watching(server)
    wait_for(server.watches)
    both = asking_process(run)
    for each in both:
        status = status_of(each)
        assert {status[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {"0" * 16}
        # Its input and outputs, its side of the socket, what libcurl has.
        links = [os.readlink("/proc/%d/fd/%s" % (each, name))
                 for name in os.listdir("/proc/%d/fd" % each)]
        assert not any("bpf" in link or "perf_event" in link for link in links)
    assert status["Name"] == "pybpfprof-pods"
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    run.process.kill()
    run.finish()
    wait_for(lambda: not any(os.path.exists("/proc/%d" % each) for each in both))


def test_what_asks_is_killed(cluster, contained, watching, store):
    """Another one asks; what is known stays meanwhile."""
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
