# SPDX-License-Identifier: BSD-2-Clause
"""The agent and its store: windows add up, survive what ends the agent, and stay small."""

import contextlib
import json
import os
import random
import re
import resource
import subprocess
import time

import pytest

from agents import Store, end, named, own, total, wait_for
from conftest import wait_used
from test_agent_http import Site, free_port


def moment(nanoseconds):
    """A time of the clock, as --since takes it."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanoseconds // 10**9))
    return "%s.%09dZ" % (text, nanoseconds % 10**9)


@pytest.mark.timed
def test_windows_add_up(any_python, target, agent, report, store):
    services = {name: target(any_python, "busy.py", environment=named(name))
                for name in ("web", "api")}

    def used():
        return {name: service.cpu_seconds() for name, service in services.items()}

    times = [used()]
    run = agent("--window", "1s", "-r", "199")
    times.append(used())
    wait_used(2, *(service.pid for service in services.values()))
    wait_for(lambda: len(store.windows()) >= 4)
    times.append(used())
    end(run)
    times.append(used())
    assert run.status == 0, run.stderr
    windows = store.check()
    assert len(windows) >= 4
    rows = report()
    assert total(rows) == sum(samples for _, samples, _, _ in windows.values())
    for name in services:
        # The CPU time while it certainly sampled, and that from before it began until it had ended.
        least, most = times[2][name] - times[1][name], times[3][name] - times[0][name]
        chosen = report("--label", "service_name=" + own(name))
        assert {row[0] for row in chosen} == {own(name)}
        assert chosen == [row for row in rows if row[0] == own(name)]
        assert 0.6 * least < total(chosen) / 199 < 1.3 * most + 0.3
    both = report("--label", "service_name=" + own("web"), "--label", "service_name=" + own("api"))
    assert {row[0] for row in both} == {own("web"), own("api")}
    report("--label", "service_name=none", status=5)


def test_reports_of_a_time(any_python, target, agent, report, store):
    target(any_python, "busy.py", environment=named("web"))

    def with_samples():
        return sorted(number for number, row in store.windows().items() if row[1])

    run = agent("--window", "0.5s", "-r", "199")
    wait_for(lambda: len(with_samples()) >= 5)
    end(run)
    windows = store.check()
    end_of = dict(store.select("SELECT id, end_ns FROM windows"))
    middle = with_samples()[2]
    first = total(report("--until", moment(end_of[middle])))
    rest = total(report("--since", moment(end_of[middle])))
    assert first == sum(row[1] for number, row in windows.items() if number <= middle)
    assert rest == sum(row[1] for number, row in windows.items() if number > middle)
    report("--since", "2d", "--until", "1d", status=5)


def test_what_changed(any_python, target, agent, profile, store, require, tmp_path):
    """One process before, and two of it later."""
    options = {"environment": named("web")}
    many = target(any_python, "many_stacks.py", 1, **options)
    run = agent("--window", "0.5s", "-r", "499")
    wait_used(2, many.pid)
    wait_for(lambda: len(store.windows()) >= 3)
    middle, count = time.time_ns(), len(store.windows())
    # The window that it is in is of both times.
    wait_for(lambda: len(store.windows()) > count + 1)
    wait_used(2, target(any_python, "busy.py", **options).pid)
    end(run)
    over = time.time_ns()
    # Of the time after it, and of as long a time up to it.
    span = ["--since", moment(middle), "--until", moment(over), "--label",
            "service_name=" + own("web"), "--diff", "%.9fs" % ((over - middle) / 1e9)]

    def compare(*options):
        read = profile.attempt("report", "--store", store.folder, *span, *options)
        assert read.status == 0, read.stderr
        return read
    read = compare("-o", "-")
    rows = re.findall(r"^ *(\S+)% +(\S+)% +(\S+)% +(\S+)%  (\w+) \(busy.py\)$",
                      read.stdout.decode("utf-8"), re.MULTILINE)
    changes = {row[4]: tuple(map(float, row[:4])) for row in rows}
    was, now, change, _ = changes["leaf"]
    assert was == 0 and now > 2 and abs(change - now) < 0.02
    stacks = [line.rsplit(" ", 2)
              for line in compare("-f", "folded", "-o", "-").stdout.decode("utf-8").splitlines()]
    leaves = [(int(before), int(after)) for stack, before, after in stacks if ";leaf (" in stack]
    assert not sum(before for before, _ in leaves) and sum(after for _, after in leaves) > 20
    assert sum(int(before) for _, before, _ in stacks) > 20
    # The page has both sides whole.
    compare("-o", tmp_path / "change.html")
    page = json.loads(re.search('id="profile">(.*?)</script>', (
        tmp_path / "change.html").read_text(encoding="utf-8"), re.DOTALL).group(1))
    samples = [sum(part["samples"][2::3]) for part in (page["before"], page)]
    assert abs(samples[0] * page["before"]["scale"] - sum(int(row[1]) for row in stacks)) \
        <= len(stacks)
    assert samples[1] == sum(int(row[2]) for row in stacks)
    assert ", compared with " in page["title"]
    # What pprof makes of it: a part of what was before.
    compare("-o", tmp_path / "change.pb.gz")
    text = subprocess.check_output(
        [require("go"), "tool", "pprof", "-top", "-sample_index=samples",
         str(tmp_path / "change.pb.gz")], env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)),
        stderr=subprocess.DEVNULL).decode("utf-8")
    assert "% of " + str(sum(int(before) for _, before, _ in stacks)) in text, text
    assert re.search(r"^ +%d .* leaf$" % sum(after for _, after in leaves), text, re.MULTILINE), text
    empty = profile.attempt("report", "--store", store.folder, "--diff", "2d")
    assert empty.status == 5 and "in the earlier time" in empty.stderr


@pytest.mark.parametrize("name,check", [
    ("out.html", lambda content: b"</html>" in content),
    ("out.pb.gz", lambda content: content[:2] == b"\x1f\x8b"),
    ("out.speedscope.json", lambda content: "profiles" in json.loads(content)),
    ("out.text", lambda content: b"self" in content)])
def test_formats(name, check, any_python, target, agent, profile, store, tmp_path):
    target(any_python, "busy.py", environment=named("web"))
    run = agent("--window", "0.5s")
    wait_for(lambda: len(store.windows()) > 1)
    path = tmp_path / name
    # While the agent writes.
    read = profile.attempt("report", "--store", store.folder, "-o", path)
    assert read.status == 0, read.stderr
    assert check(path.read_bytes())
    end(run)


def label_sets(store):
    """All that samples have."""
    if not os.path.exists(store.path):
        return []
    return [json.loads(text) for (text,) in store.select("SELECT labels FROM label_sets")]


def test_processes_are_apart_on_request(any_python, target, agent, store):
    pids = {target(any_python, "busy.py", environment=named("web")).pid for _ in range(2)}
    run = agent("--window", "0.5s", "-r", "199", "--with-pid", "--node", "here")
    wait_for(lambda: {int(found["pid"]) for found in label_sets(store)} >= pids)
    end(run)
    labels = label_sets(store)
    assert {int(found["pid"]) for found in labels if found["service_name"] == own("web")} == pids
    assert {found["node"] for found in labels} == {"here"}


def test_threads_are_apart_on_request(any_python, target, agent, report, store):
    jobs = {"first worker": "first_job", "zweiter; \u00fc 2": "second_job", "the main one": "main_job"}
    target(any_python, "named_threads.py", environment=named("web"))
    run = agent("--window", "0.5s", "-r", "199", "--with-thread")
    wait_for(lambda: {found.get("thread") for found in label_sets(store)
                      if found["service_name"] == own("web")} >= set(jobs))
    end(run)
    for name, job in jobs.items():
        rows = report("--label", "thread=" + name, "--label", "service_name=" + own("web"))
        assert total(rows) > 0
        assert all(any(job in frame for frame in frames) for _, frames, _ in rows), rows


def test_service_is_known_after_its_environment_is_gone(any_python, target, agent, store):
    """And what it forks is of it."""
    def services(pid):
        return {found["service_name"] for found in label_sets(store) if found["pid"] == str(pid)}

    site = Site(free_port())
    run = agent("--window", "0.5s", "-r", "199", "--with-pid", "--listen", site.address)
    wait_for(lambda: site.status_of("healthz") == 200)
    program = target(any_python, "retitled.py", environment=named("web"))
    wait_for(lambda: program.pid in [row["pid"] for row in json.loads(site.get("status"))["targets"]])
    program.go()
    child = int(program.process.stdout.readline())
    wait_for(lambda: services(child))
    end(run)
    assert services(child) == {own("web")}


def test_killed_while_storing(any_python, target, agent, report, store):
    """Every window is whole or absent, whenever the agent is killed."""
    target(any_python, "many_stacks.py", 2000, environment=named("many"))
    before, killed = {}, 0
    while killed < 10 or len(before) <= 10:
        killed += 1
        run = agent("--window", "0.2s", "-r", "1999")
        time.sleep(0.3 + random.random() / 2)
        run.process.kill()
        run.finish()
        windows = store.check()
        assert windows.items() >= before.items()
        before = windows
    assert total(report()) == sum(row[1] for row in before.values())


@pytest.mark.timed
@pytest.mark.alone
def test_retention_keeps_the_size(any_python, target, agent, report, store):
    """And what the agent forgets meanwhile mixes nothing up."""
    target(any_python, "many_stacks.py", 2000, environment=named("many"))
    target(any_python, "busy.py", environment=named("web"))
    run = agent("--window", "0.2s", "-r", "3999", "--store-size", "1M", "-v")
    wait_for(lambda: min(store.windows(), default=1) > 10)
    largest = 0
    for _ in range(30):
        largest = max(largest, store.bytes())
        time.sleep(0.1)
    end(run)
    assert run.status == 0, run.stderr
    windows = store.check()
    assert 1 not in windows and windows
    # The database, and what is not yet merged into it.
    assert largest < 4 << 20
    assert os.path.getsize(store.path) < 1.5 * (1 << 20)
    assert "compacted to" in run.stderr
    rows = report()
    assert total(rows) == sum(row[1] for row in windows.values())
    for service, frames, _ in rows:
        functions = [re.fullmatch(r"function_(\d+) \(many_(\d+).py.*", frame) for frame in frames]
        assert service.startswith("many-") or not any(functions)
        assert all(match[1] == match[2] for match in functions if match)
    assert {own("many"), own("web")} <= {row[0] for row in rows}


def cpu_seconds_of(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.timed
@pytest.mark.alone
def test_a_busy_day_is_answered_soon(binary, tool, store, tmp_path):
    """24 hours of 200 services: about a second of CPU time on a quick machine that does nothing else, where
    to make that day takes some four."""
    made = cpu_seconds_of(tool("synthetic_day"), store.folder, "200", "8640", str(int(time.time())))
    assert os.path.getsize(store.path) < 120 << 20
    command = [binary, "report", "-q", "--store", store.folder, "-o", tmp_path / "report", "--since"]
    for words in (["25h", "-f", "text"], ["25h", "-f", "html"], ["25h", "-f", "pprof"], ["25h", "-f", "folded"],
                  ["12h", "--diff", "12h"]):
        assert min(cpu_seconds_of(*command, *words) for _ in range(2)) < 0.6 * made, words
        assert os.path.getsize(tmp_path / "report") > 100000


@pytest.mark.timed
def test_age_is_kept(any_python, target, agent, store):
    target(any_python, "busy.py", environment=named("web"))
    run = agent("--window", "0.2s", "--store-age", "1s")
    wait_for(lambda: min(store.windows(), default=1) > 5)
    end(run)
    assert len(store.check()) < 10


def test_a_full_disk_costs_windows_only(any_python, target, profile, report, tmp_path):
    """Until there is room again; that is said when it begins and when it ends."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)], check=True)
    try:
        store = Store(folder)
        target(any_python, "many_stacks.py", 2000, environment=named("many"))
        site = Site(free_port())
        run = profile.start("agent", "--store", store.folder, "--window", "0.2s", "-r", "1999",
                            "--listen", site.address, files=False)
        run.wait_sampling()
        wait_for(lambda: site.status_of("healthz") == 200)
        run.wait_said("windows are lost until")
        wait_for(lambda: site.metrics()["pybpfprof_sink_windows_total"][
            'sink="store",result="lost"'] >= 10)
        subprocess.run(["mount", "-o", "remount,size=60m", str(folder)], check=True)
        wait_for(lambda: run.said().count("windows are taken again") ==
                 run.said().count("windows are lost until"))
        end(run)
        assert run.status == 1
        # A window in between may have found room.
        said = len(re.findall("windows are lost until", run.stderr))
        assert said == len(re.findall("windows are taken again", run.stderr)), run.stderr
        lost = re.search(r"store: (\d+) of \d+ windows were lost", run.stderr)
        assert 0 < said < int(lost[1]), run.stderr
        windows = store.check()
        assert windows
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_too_much(any_python, target, agent, store):
    """The oldest windows go, which is said once, and none is lost: also with a limit that the disk
    does not have, and where it is lowered."""
    os.mkdir(store.folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", store.folder], check=True)
    try:
        target(any_python, "many_stacks.py", 300, environment=named("many"))
        said = []
        for size in "1G", "1M":
            run = agent("--window", "0.2s", "-r", "1999", "--listen", "off", "--store-size", size)
            oldest = min(store.windows(), default=1)
            wait_for(lambda: min(store.windows(), default=1) > oldest + 20 and
                     len(store.windows()) > 10)
            end(run)
            assert run.status == 0, run.stderr
            said.append(run.stderr.count("removing the oldest windows"))
            assert store.check()
        assert said[0] == 1 and said[1] <= 1
        assert os.path.getsize(store.path) < 1.5 * (1 << 20)
    finally:
        subprocess.run(["umount", "-l", store.folder], check=True)


def fill(folder):
    """Takes all the room that is left there."""
    with open(os.path.join(folder, "of somebody else"), "wb", buffering=0) as file, \
            contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def test_it_starts_on_a_full_disk(any_python, target, agent, profile, store):
    """By what an earlier one kept for that; who has nothing is told what mends it."""
    os.mkdir(store.folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", store.folder], check=True)
    try:
        target(any_python, "busy.py", environment=named("web"))
        run = agent("--window", "0.2s", "--listen", "off")
        wait_for(lambda: len(store.windows()) > 5)
        end(run)
        fill(store.folder)
        asked = profile.attempt("report", "--store", store.folder)
        assert asked.status == 1 and re.search("no space left to write .*: free some", asked.stderr), asked.stderr
        run = agent("--window", "0.2s", "--listen", "off")
        newest = max(store.windows())
        wait_for(lambda: max(store.windows()) > newest + 5)
        end(run)
        assert run.status == 0, run.stderr
        store.check()
        fill(store.folder)
        os.truncate(os.path.join(store.folder, "pybpfprof.reserve"), 0)
        fill(store.folder)
        run = profile.attempt("agent", "--store", store.folder, "--listen", "off")
        assert run.status == 1 and re.search("no space left to write .*: free some", run.stderr), run.stderr
    finally:
        subprocess.run(["umount", "-l", store.folder], check=True)


def resources(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as status:
        resident = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
    return resident, len(os.listdir("/proc/%d/fd" % pid))


@pytest.mark.timed
@pytest.mark.alone
def test_memory_is_flat(any_python, target, agent, store):
    """Over windows, and processes that come and go."""
    target(any_python, "busy.py", environment=named("web"))
    run = agent("--window", "0.4s", "-r", "199")
    measured = []
    while len(measured) < 60:
        count = len(store.windows())
        for _ in range(3):
            subprocess.run([*any_python.command, "-c", "sum(range(10**6))"], check=True,
                           stdin=subprocess.DEVNULL)
        if len(store.windows()) > count:
            measured.append(resources(run.pid))
    end(run)
    assert run.status == 0, run.stderr
    assert len(store.check()) >= 60
    early, late = measured[20:25], measured[-5:]
    assert max(row[0] for row in late) < min(row[0] for row in early) + 2048, measured
    assert late[-1][1] <= max(row[1] for row in early) + 2, measured


@pytest.mark.parametrize("folder,says", [
    ("/dev/null/store", "cannot create folder"), ("/proc/store", "cannot create folder"),
    ("/nowhere/store", "run mkdir -p first")])
def test_a_folder_that_cannot_be_written(folder, says, profile):
    run = profile.attempt("agent", "--store", folder)
    assert run.status == 1
    assert says in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr


def test_one_agent_writes_at_a_time(any_python, target, agent, profile, report, store):
    """Another one is refused, but for one that comes when the first one ends; reports are not."""
    target(any_python, "busy.py", environment=named("web"))
    words = ("agent", "--store", store.folder, "--window", "0.2s", "--listen", "off")
    run = agent("--window", "0.2s", "--listen", "off")
    wait_for(store.windows)
    refused = profile.attempt(*words)
    assert refused.status == 1 and "another agent writes to the store" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1, refused.stderr
    assert report()
    following = profile.start(*words, files=False)
    end(run)
    following.wait_sampling()
    end(following)
    store.check()
    times = store.select("SELECT start_ns, end_ns FROM windows ORDER BY id")
    assert all(end_ns <= start_ns for (_, end_ns), (start_ns, _) in zip(times, times[1:]))


def test_a_broken_store(profile, store):
    os.mkdir(store.folder)
    with open(store.path, "wb") as file:
        file.write(b"no database" * 1000)
    for words in (("agent",), ("report",)):
        run = profile.attempt(*words, "--store", store.folder)
        assert run.status == 1
        assert "is broken" in run.stderr and "move it away" in run.stderr
        assert len(run.stderr.splitlines()) == 1, run.stderr


@pytest.mark.parametrize("words,says", [
    (["agent"], "--store DIR"), (["agent", "--store"], "needs a value"),
    (["agent", "--store", "x", "--window", "0"], "window '0'"),
    (["agent", "--store", "x", "--store-size", "1"], "size '1'"),
    (["agent", "--store", "x", "--store-age", "old"], "age 'old'"),
    (["agent", "--store", "x", "--rate", "x"], "rate 'x'"),
    (["agent", "--store", "x", "--cpu-budget", "1"], "budget '1'"),
    (["agent", "--store", "x", "--memory-limit", "1"], "limit '1'"),
    (["agent", "--store", "x", "--pid", "1"], "unknown option '--pid'"),
    (["agent", "--store", "x", "word"], "'word' is not an option"),
    (["report"], "--store DIR"), (["report", "--store", "x", "--since", "x"], "time 'x'"),
    (["report", "--store", "x", "--since", "1h", "--until", "2h"], "not before"),
    (["report", "--store", "x", "--label", "web"], "label 'web'"),
    (["report", "--store", "x", "--diff", "x"], "time 'x'"),
    (["report", "--store", "x", "--diff", "1h", "-f", "speedscope"],
     "speedscope cannot show"),
    (["report", "--store", "x", "-f", "svg"], "format 'svg'"),
    (["report", "--store", "x", "-o", "x.svg"], "does not give the format")])
def test_wrong_usage(words, says, profile):
    run = profile.attempt(*words)
    assert run.status == 2
    assert says in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr


@pytest.mark.parametrize("verb", ["agent", "report"])
def test_help(verb, profile):
    run = profile.attempt(verb, "--help")
    assert run.status == 0 and run.stderr == ""
    assert b"--store DIR" in run.stdout
    # Each option has its text beside it, or below where it is too long for that.
    text = run.stdout.decode().partition("Examples:")[0]
    options = [line for line in text.splitlines() if re.match(r"  (-\w,|   ) --", line)]
    assert len(options) > 8
    assert all(re.fullmatch(r".{26} \S.*|  +(-\w, )?--[a-z-]+ [A-Z]+", line) for line in options)
