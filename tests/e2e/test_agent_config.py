# SPDX-License-Identifier: BSD-2-Clause
"""The agent's configuration: where values come from, and that a reload loses no samples."""

import os
import re
import signal
import sys

import pytest

from agents import end, named, total
from conftest import wait_for


@pytest.fixture
def config(tmp_path):
    """config(TEXT): the path of a configuration file with TEXT."""
    def write(text):
        # Replace the file atomically, as editors do.
        path = tmp_path / "agent.yaml"
        (tmp_path / "new").write_text(text)
        os.rename(tmp_path / "new", path)
        return str(path)
    return write


def hang_up(run):
    run.process.send_signal(signal.SIGHUP)


def test_where_values_come_from(profile, config):
    path = config("rate: 49\nstore: /var/lib/here\nexclude: [comm=make, uid=0]\n")
    run = profile.attempt("agent", "--config", path, "--window", "5s", "--print-config",
                          env=dict(os.environ, PYBPFPROF_STORE_SIZE="2G"))
    assert run.status == 0 and run.stderr == ""
    lines = run.stdout.decode("utf-8").splitlines()
    assert "rate: 49  # %s:1" % path in lines
    assert "window: 5s  # --window" in lines
    assert "store-size: 2G  # PYBPFPROF_STORE_SIZE" in lines
    assert "store-age: 7d  # the default" in lines
    assert 'exclude: ["comm=make", "uid=0"]  # %s:3' % path in lines
    # The output is a valid configuration.
    again = profile.attempt("agent", "--config", config(run.stdout.decode("utf-8")),
                            "--print-config")
    without = [re.sub("  #.*", "", line) for line in lines]
    assert [re.sub("  #.*", "", line)
            for line in again.stdout.decode("utf-8").splitlines()] == without


@pytest.mark.parametrize("text,says", [
    ("store: /x\nrat: 1\n", ":2: unknown key 'rat'"),
    ("rate: 1\nrate: 2\n", ":2: 'rate' is already set at "),
    ("store: /x\n\nrate: fast\n", ":3: rate 'fast' is not a number"),
    ("store: {x: 1}\n", ":1: a plain value belongs here"),
    ("comm: [\n", ":2: did not find expected node content"),
    ("with-pid: 1\n", ":1: with-pid '1' is not true or false"),
    ("exclude: [x]\n", ":1: ")])
def test_a_bad_file_is_refused(text, says, profile, config):
    run = profile.attempt("agent", "--config", config(text), "--store", "x")
    assert run.status == 2
    assert says in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr


def test_a_bad_variable_is_refused(profile):
    run = profile.attempt("agent", "--store", "x", env=dict(os.environ, PYBPFPROF_RATE="fast"))
    assert run.status == 2
    assert "PYBPFPROF_RATE: rate 'fast' is not" in run.stderr


def test_no_such_file(profile):
    run = profile.attempt("agent", "--config", "/nowhere")
    assert run.status == 2 and "cannot read the configuration /nowhere" in run.stderr


def test_a_pipe_or_a_folder_is_refused(profile, tmp_path):
    """Opening a pipe would block forever."""
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (tmp_path / "pipe", "pipe"), (tmp_path, "directory"):
        run = profile.attempt("agent", "--config", path)
        assert run.status == 2
        assert run.stderr.strip() == (
            "pybpfprof: the configuration %s is a %s, not a file" % (path, kind))


def test_reload(any_python, target, agent, report, store, config):
    """Each window has one rate, and no sample is lost."""
    target(any_python, "busy.py", environment=named("web"))
    run = agent("--config", config("rate: 99\nwindow: 0.2s\n"))
    wait_for(lambda: len(store.windows()) > 2)
    config("rate: 499\nwindow: 0.1s\nstore: /elsewhere\n")
    hang_up(run)
    wait_for(lambda: store.select("SELECT id FROM windows WHERE rate_hz = 499 AND samples"))
    config("rate: 299\nwindow: never\n")
    hang_up(run)
    run.wait_said("the configuration is unchanged")
    end(run)
    assert run.status == 0, run.stderr
    assert "agent.yaml again" in run.stderr
    assert "a change of store takes effect" not in run.stderr  # --store counts before the file
    assert "agent.yaml:2: window 'never' is not" in run.stderr
    assert "the configuration is unchanged" in run.stderr
    store.check()
    rows = store.select("SELECT rate_hz, start_ns, end_ns, samples FROM windows ORDER BY id")
    assert {rate for rate, _, _, _ in rows} == {99, 499}
    assert sorted(rows, key=lambda row: row[0]) == rows
    # No gap.
    assert all(one[2] == other[1] for one, other in zip(rows, rows[1:]))
    # Samples at the lower rate are scaled up.  Rounding may cost each service one sample.
    shown = report()
    expected = sum(samples * 499 / rate for rate, _, _, samples in rows)
    assert abs(total(shown) - expected) <= len({row[0] for row in shown})


def test_it_reloads_under_nohup(agent, config):
    """SIGHUP is ignored when the agent starts."""
    run = agent("--config", config("rate: 20\n"), prefix=[
        sys.executable, "-S", "-c", "import os, signal, sys; signal.signal(1, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"])
    config("rate: 30\n")
    hang_up(run)
    run.wait_said("agent.yaml again")
    end(run)
    assert run.status == 0


@pytest.mark.parametrize("name, before, after", [
    ("max-processes", 100, 200), ("kernel", "false", "true"), ("native", "false", "true"),
    ("unwind-memory", "64M", "32M")])
def test_a_setting_that_needs_a_restart_is_unchanged(name, before, after, agent, config, store):
    run = agent("--config", config("%s: %s\n" % (name, before)))
    config("%s: %s\n" % (name, after))
    hang_up(run)
    run.wait_said(name)
    end(run)
    assert "a change of %s takes effect when the agent restarts" % name in run.stderr


def test_without_a_file_a_hangup_ends_it(agent):
    run = agent()
    hang_up(run)
    assert run.finish().status == 0
