# SPDX-License-Identifier: BSD-2-Clause
"""pybpfprof check --agent: the store, the HTTP address, the backends and the API server, each usable and
unusable."""

import contextlib
import errno
import json
import os
import pathlib
import socket
import sqlite3
import subprocess

import pytest

from agents import end
from conftest import CAPABILITIES, as_nobody, wait_for
from test_check import CHUNK, NAMES, NOT_ALLOWED, USAGE, cover, deny, execute, run, with_shell
from test_pods import cluster  # noqa: F401 (a fixture)
from push_servers import authority, backend  # noqa: F401 (fixtures)


BPF_TRACE_ITER = "28"


def found(binary, *options, prefix=()):
    """[(name, verdict, whole text)] of the additional checks for the agent.  It does not listen unless
    OPTIONS say so."""
    answer = run(binary, "--json", "--agent", "--listen", "off", *options, prefix=prefix)
    assert answer.stderr == "", answer.stderr
    told = json.loads(answer.stdout)
    assert [check["name"] for check in told["checks"]][:len(NAMES)] == NAMES
    missing = any(check["verdict"] == "MISSING" for check in told["checks"])
    assert told["works"] is not missing
    assert answer.returncode == (NOT_ALLOWED if missing else 0)
    return [(check["name"], check["verdict"],
             " ".join(str(check[part]) for part in ("found", "costs", "mend")))
            for check in told["checks"][len(NAMES):]]


def verdicts(binary, *options, **more):
    return [row[:2] for row in found(binary, *options, **more)]


def test_everything_works(binary, tmp_path, backend, cluster, authority):  # noqa: F811
    server, proof = cluster(), authority("theirs")
    pushed = backend("parca", proof.sign("IP:127.0.0.1"))
    rows = found(binary, "--store", tmp_path / "store", "--store-size", "1M", "--node", "a-node",
                 "--push", "%s ca=%s" % (pushed.url(), proof.certificate),
                 "--push", backend("pyroscope").url(), "--kubernetes", server.url,
                 "--kubernetes-credentials", server.credentials)
    assert [row[:2] for row in rows] == [("store", "OK"), ("HTTP", "OK"), ("backend", "OK"),
                                         ("backend", "OK"), ("Kubernetes", "OK")], rows
    # Check creates no store and pushes nothing.  It requests one list of pods.
    assert not (tmp_path / "store").exists() and not pushed.seen
    asked, = server.asked
    assert asked.query == {"fieldSelector": "spec.nodeName=a-node", "limit": "1"}


def test_the_configuration_is_checked(binary, tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text("store: /proc/none\nkubernetes: off\n")
    assert verdicts(binary, "--config", config) == [
        ("store", "MISSING"), ("HTTP", "OK"), ("Kubernetes", "OK")]
    config.write_text("store: /tmp\nrat: 1\n")
    answer = run(binary, "--agent", "--config", config)
    assert answer.returncode == USAGE and "agent.yaml:2: unknown key 'rat'" in answer.stderr
    answer = run(binary, "--agent")
    assert answer.returncode == USAGE and "nowhere to send profiles" in answer.stderr


def test_the_agent_needs_access_to_all_processes(public_binary):
    """Where record works only for the user's own processes, the agent does not start."""
    prefix = as_nobody(CAPABILITIES - {"dac_read_search"})
    words = ("--listen", "off", "--push", "pyroscope+http://127.0.0.1:9")
    answer = run(public_binary, "--agent", *words, prefix=prefix)
    assert answer.returncode == NOT_ALLOWED
    assert "MISSING  CAP_DAC_READ_SEARCH " in answer.stdout
    agent = execute(*prefix, public_binary, "agent", *words)
    assert agent.returncode == NOT_ALLOWED and "missing CAP_DAC_READ_SEARCH" in agent.stderr


def test_native_frames(binary, tmp_path):
    """With `native`, native frames and memory for their tables are required."""
    def verdict(name, *options, prefix=()):
        answer = run(binary, "--json", "--agent", "--listen", "off", "--store", tmp_path, "--store-size", "1M",
                     *options, prefix=prefix)
        row, = [row for row in json.loads(answer.stdout)["checks"] if row["name"] == name]
        return row["verdict"], row["costs"]

    config = tmp_path / "agent.yaml"
    config.write_text("native: true\n")
    refused = deny(CHUNK, errno.ENOMEM)
    assert verdict("native frames", prefix=refused) == ("LIMITED", "--native does not work")
    assert verdict("native frames", "--config", config, prefix=refused) == ("MISSING", "the agent does not start")
    little = with_shell("\n".join([cover("/proc/$$/cgroup", "0::/a\n", tmp_path), "mount -t tmpfs none /sys/fs/cgroup",
                                   "mkdir /sys/fs/cgroup/a", "echo %d >/sys/fs/cgroup/a/memory.max" % (1 << 30)]))
    assert verdict("memory", "--native", prefix=little)[0] == "OK"
    assert verdict("memory", "--unwind-memory", "1G", prefix=little)[0] == "OK"
    assert verdict("memory", "--native", "--unwind-memory", "1G", prefix=little)[0] == "LIMITED"


def test_context_switches(binary, tmp_path, monkeypatch):
    """An agent with `off-cpu` needs them; record only for what shows waits."""
    def row(*options):
        answer = run(binary, "--json", *options)
        found, = [row for row in json.loads(answer.stdout)["checks"] if row["name"] == "context switches"]
        return found["verdict"], found["found"], found["costs"]

    agent = "--agent", "--listen", "off", "--store", tmp_path, "--store-size", "1M"
    assert row() == ("OK", "can be followed", None)
    monkeypatch.setenv("LD_PRELOAD", os.path.join(os.path.dirname(binary), "refuse_bpf.so"))
    monkeypatch.setenv("REFUSED_ATTACH_TYPE", BPF_TRACE_ITER)
    found = "cannot be followed: Cannot allocate memory"
    assert row() == ("LIMITED", found, "--off-cpu and --wall do not work")
    assert row(*agent) == ("LIMITED", found, "--off-cpu and --wall do not work")
    assert row(*agent, "--off-cpu") == ("MISSING", found, "the agent does not start")


def test_the_table_names_the_agent(binary, tmp_path):
    answer = run(binary, "--agent", "--store", tmp_path / "store")
    assert answer.stdout.splitlines()[-1] == "pybpfprof agent works here."


@pytest.mark.parametrize("size,verdict", [("8m", "MISSING"), ("64m", "LIMITED")])
def test_a_store_without_room(size, verdict, binary, require, tmp_path):
    require("unshare")
    prefix = with_shell("mount -t tmpfs -o size=%s none %s" % (size, tmp_path))
    name, found_verdict, said = found(binary, "--store", tmp_path / "store", prefix=prefix)[0]
    assert (name, found_verdict) == ("store", verdict)
    assert "--store-size is 1024 MiB" in said


def test_a_store_that_uses_space_already(binary, require, agent, store):
    """The store's own size reduces the space that it needs."""
    require("unshare")
    run = agent("--window", "0.2s", "--listen", "off")
    wait_for(store.windows)
    end(run)
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        database.execute("INSERT INTO strings (text, until) VALUES (hex(randomblob(3000000)), 0)")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    prefix = with_shell("mount -t tmpfs -o size=32m none /mnt && cp -r %s /mnt/store" % store.folder)
    for size, verdict in ("28M", "OK"), ("40M", "LIMITED"):
        rows = found(binary, "--store", "/mnt/store", "--store-size", size, prefix=prefix)
        assert rows[0][:2] == ("store", verdict), rows
    assert "--store-size is 40 MiB with 11 MiB used" in rows[0][2]


def make_newer(store):
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as database:
        database.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("damage,says", [
    (lambda store: pathlib.Path(store.path).write_bytes(b"no database" * 1000), "is corrupt"),
    (make_newer, "made by a newer pybpfprof")])
def test_a_store_that_the_agent_refuses(damage, says, binary, tool, store):
    """The reason is reported.  An empty database is accepted."""
    options = ("--store", store.folder, "--store-size", "1M")
    os.mkdir(store.folder)
    open(store.path, "wb").close()
    assert verdicts(binary, *options)[0] == ("store", "OK")
    os.unlink(store.path)
    subprocess.run([tool("synthetic_day"), store.folder, "1", "2", "1000"], check=True)
    assert verdicts(binary, *options)[0] == ("store", "OK")
    damage(store)
    name, verdict, said = found(binary, *options)[0]
    assert (name, verdict) == ("store", "MISSING") and says in said


def test_verbose(binary, tmp_path):
    """-v works together with --agent."""
    answer = run(binary, "-v", "--agent", "--store", tmp_path, prefix=deny(321, errno.EPERM))
    assert answer.returncode == NOT_ALLOWED and "libbpf: " in answer.stderr, answer.stderr


def test_a_store_that_cannot_be_written_to(binary, require, tmp_path):
    require("unshare")
    prefix = with_shell("mount -t tmpfs -o ro none %s" % tmp_path)
    name, verdict, said = found(binary, "--store", tmp_path, prefix=prefix)[0]
    assert (name, verdict) == ("store", "MISSING") and "Read-only" in said


def listening(binary, *options, **more):
    row, = [row for row in found(binary, *options, **more) if row[0] == "HTTP"]
    return row[1:]


def test_where_it_listens(binary, tmp_path):
    """The check leaves the address free.  An address given by --listen must be usable."""
    options = ("--store", tmp_path, "--store-size", "1M", "--listen")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        verdict, said = listening(binary, *options, address)
        assert verdict == "MISSING" and "the agent does not start" in said
        assert "cannot listen on %s: Address already in use" % address in said
    for _ in range(2):
        verdict, said = listening(binary, *options, address)
        assert verdict == "OK" and "can listen on %s " % address in said, said
    assert "anyone who can reach it" not in said
    verdict, said = listening(binary, *options, ":0")
    assert verdict == "OK" and "anyone who can reach it can read" in said
    assert "not listening" in listening(binary, *options, "off")[1]


def test_the_default_address_is_unusable(binary, tmp_path):
    """The agent then runs without HTTP."""
    bind = 49
    answer = run(binary, "--json", "--agent", "--store", tmp_path, "--store-size", "1M",
                 prefix=deny(bind, errno.EACCES))
    row, = [row for row in json.loads(answer.stdout)["checks"] if row["name"] == "HTTP"]
    assert row["verdict"] == "LIMITED" and row["costs"] == "nothing is served over HTTP"
    assert "127.0.0.1:7117: Permission denied" in row["found"]
    assert answer.returncode == 0


def test_unusable_backends(binary, tmp_path, backend, authority):  # noqa: F811
    gone, proof = backend("pyroscope"), authority("ours")
    gone.stop()
    unproved = backend("parca", authority("theirs").sign("IP:127.0.0.1"))
    token = tmp_path / "token"
    token.write_text("secret")
    # Root may read the file, but the push process may not.
    os.chown(token, 65534, 65534)
    token.chmod(0o600)
    rows = found(binary, "--push", gone.url(), "--push",
                 "%s ca=%s" % (unproved.url(), proof.certificate), "--push",
                 "%s token=%s" % (backend("pyroscope").url(), token))[2:]
    assert [row[:2] for row in rows[:3]] == [("backend", "MISSING")] * 3
    for (_, _, said), wanted in zip(rows, ("connect", "certificate", "cannot read %s" % token)):
        assert wanted in said


def test_an_api_server_that_refuses(binary, tmp_path, cluster):  # noqa: F811
    server = cluster()
    options = ("--store", tmp_path, "--store-size", "1M", "--kubernetes", server.url,
               "--kubernetes-credentials")

    def said(credentials=server.credentials):
        name, verdict, text = found(binary, *options, credentials)[-1]
        assert (name, verdict) == ("Kubernetes", "LIMITED")
        return text
    server.answer = lambda handler, asked: handler.reply(403, "application/json", b"{}") or True
    assert "may not list and watch pods (403)" in said()
    server.answer = None
    server.tokens = {"another"}
    assert "token (401)" in said()
    assert "cannot read %s/token" % tmp_path in said(tmp_path)
