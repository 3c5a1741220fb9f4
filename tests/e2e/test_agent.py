# SPDX-License-Identifier: BSD-2-Clause
"""The agent and its store: windows add up, survive a killed agent, and stay within their limits."""

import contextlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import time

import pytest

from agents import Store, end, label_sets, named, own, services, total
from conftest import PROGRAMS, wait_for
from test_agent_http import LISTEN, Site


def moment(nanoseconds):
    """A wall-clock time in the format of --since."""
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanoseconds // 10**9))
    return "%s.%09dZ" % (text, nanoseconds % 10**9)


def test_windows_add_up(any_python, target, agent, report, store):
    names = {own(name): target(any_python, "busy.py", environment=named(name)) for name in ("web", "api")}
    run = agent("--window", "0.2s", "-r", "199")
    wait_for(lambda: len(store.windows()) >= 4 and services(store) >= set(names))
    end(run)
    assert run.status == 0, run.stderr
    # How a short file name is written depends on the other files in the report.
    rows = report("--full-filenames")
    assert total(rows) == sum(samples for _, samples, _, _ in store.check().values())
    for name in names:
        chosen = report("--full-filenames", "--label", "service_name=" + name)
        assert chosen and chosen == [row for row in rows if row[0] == name]
    both = report("--label", "service_name=" + own("web"), "--label", "service_name=" + own("api"))
    assert {row[0] for row in both} == {own("web"), own("api")}
    report("--label", "service_name=none", status=5)


def test_reports_of_a_time_range(any_python, target, agent, report, store):
    target(any_python, "busy.py", environment=named("web"))

    def with_samples():
        return sorted(number for number, row in store.windows().items() if row[1])

    run = agent("--window", "0.2s", "-r", "199")
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


def test_diff_report(any_python, target, agent, profile, report, store, require, tmp_path):
    """First one process runs, later also a second one of the same service."""
    options = {"environment": named("web")}
    target(any_python, "many_stacks.py", 1, **options)
    run = agent("--window", "0.2s", "-r", "499")
    wait_for(lambda: own("web") in services(store))
    middle, count = time.time_ns(), len(store.windows())
    # The window that contains the middle counts for both time ranges.
    wait_for(lambda: len(store.windows()) > count + 1)
    target(any_python, "busy.py", **options)
    wait_for(lambda: any(frame.startswith("leaf (") for _, frames, _ in report() for frame in frames))
    end(run)
    over = time.time_ns()
    # Compare the time after the middle with the equally long time before it.
    span = ["--since", moment(middle), "--until", moment(over), "--label",
            "service_name=" + own("web"), "--diff", "%.9fs" % ((over - middle) / 1e9)]

    def compare(*options):
        read = profile.attempt("report", "--store", store.folder, *span, *options)
        assert read.status == 0, read.stderr
        return read
    # The default format is a table, for a file without a known extension, too.
    compare("-o", tmp_path / "change")
    read = compare("-o", "-")
    assert (tmp_path / "change").read_bytes() == read.stdout
    rows = re.findall(r"^ *(\S+)% +(\S+)% +(\S+)% +(\S+)%  (\w+) \(busy.py\)$",
                      read.stdout.decode("utf-8"), re.MULTILINE)
    changes = {row[4]: tuple(map(float, row[:4])) for row in rows}
    was, now, change, _ = changes["leaf"]
    assert was == 0 < now and abs(change - now) < 0.02  # each is rounded
    stacks = [line.rsplit(" ", 2)
              for line in compare("-f", "folded", "-o", "-").stdout.decode("utf-8").splitlines()]
    leaves = [(int(before), int(after)) for stack, before, after in stacks if ";leaf (" in stack]
    assert not sum(before for before, _ in leaves) and sum(after for _, after in leaves) > 0
    assert sum(int(before) for _, before, _ in stacks) > 0
    # The page has the whole profile of both sides.
    compare("-o", tmp_path / "change.html")
    page = json.loads(re.search('id="profile">(.*?)</script>', (
        tmp_path / "change.html").read_text(encoding="utf-8"), re.DOTALL).group(1))
    samples = [sum(part["samples"][2::3]) for part in (page["before"], page)]
    assert abs(samples[0] * page["before"]["scale"] - sum(int(row[1]) for row in stacks)) \
        <= len(stacks)
    assert samples[1] == sum(int(row[2]) for row in stacks)
    assert ", compared with " in page["title"]
    # pprof shows the change relative to the earlier total.
    compare("-o", tmp_path / "change.pb.gz")
    text = subprocess.check_output(
        [require("go"), "tool", "pprof", "-top", "-sample_index=samples",
         str(tmp_path / "change.pb.gz")], env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)),
        stderr=subprocess.DEVNULL).decode("utf-8")
    assert "% of " + str(sum(int(before) for _, before, _ in stacks)) in text, text
    assert re.search(r"^ +%d .* leaf$" % sum(after for _, after in leaves), text, re.MULTILINE), text
    empty = profile.attempt("report", "--store", store.folder, "--diff", "2d")
    assert empty.status == 5 and "in the earlier time" in empty.stderr


FORMATS = {"out.html": lambda content: b"</html>" in content,
           "out.pb.gz": lambda content: content[:2] == b"\x1f\x8b",
           "out.speedscope.json": lambda content: "profiles" in json.loads(content),
           "out.text": lambda content: b"self" in content}


def test_formats(any_python, target, agent, profile, store, tmp_path):
    target(any_python, "busy.py", environment=named("web"))
    run = agent("--window", "0.2s", "-r", "199")
    wait_for(lambda: own("web") in services(store))
    for name, check in FORMATS.items():
        # The agent writes to the store meanwhile.
        read = profile.attempt("report", "--store", store.folder, "-o", tmp_path / name)
        assert read.status == 0, read.stderr
        assert check((tmp_path / name).read_bytes())
    end(run)


def test_processes_are_separate_on_request(any_python, target, agent, store):
    pids = {target(any_python, "busy.py", environment=named("web")).pid for _ in range(2)}
    run = agent("--window", "0.2s", "-r", "199", "--with-pid", "--node", "here")
    wait_for(lambda: {int(found["pid"]) for found in label_sets(store)} >= pids)
    end(run)
    labels = label_sets(store)
    assert {int(found["pid"]) for found in labels if found["service_name"] == own("web")} == pids
    assert {found["node"] for found in labels} == {"here"}


def test_threads_are_separate_on_request(any_python, target, agent, report, store):
    jobs = {"first worker": "first_job", "zweiter; \u00fc 2": "second_job", "the main one": "main_job"}
    target(any_python, "named_threads.py", environment=named("web"))
    run = agent("--window", "0.2s", "-r", "199", "--with-thread")
    wait_for(lambda: {found.get("thread") for found in label_sets(store)
                      if found["service_name"] == own("web")} >= set(jobs))
    end(run)
    for name, job in jobs.items():
        rows = report("--label", "thread=" + name, "--label", "service_name=" + own("web"))
        assert total(rows) > 0
        assert all(any(job in frame for frame in frames) for _, frames, _ in rows), rows


def test_service_is_known_after_its_environment_is_gone(any_python, target, agent, store):
    """A child that is forked afterwards belongs to the same service."""
    def services_of(pid):
        return {found["service_name"] for found in label_sets(store) if found["pid"] == str(pid)}

    site = Site(agent("--window", "0.2s", "-r", "199", "--with-pid", *LISTEN))
    program = target(any_python, "retitled.py", environment=named("web"))
    wait_for(lambda: program.pid in [row["pid"] for row in json.loads(site.get("status"))["targets"]])
    program.go()
    child = int(program.process.stdout.readline())
    wait_for(lambda: services_of(child))
    end(site.run)
    assert services_of(child) == {own("web")}


def test_workers_get_the_service_of_their_program(any_python, target, agent, store, tmp_path):
    """The workers of both programs have the same command line."""
    names = {own("shop") + ".py", own("blog") + ".py"}
    for name in names:
        shutil.copy(os.path.join(PROGRAMS, "spawns.py"), str(tmp_path / name))
        target(any_python, str(tmp_path / name), "text")
    run = agent("--window", "0.2s", "-r", "199")
    wait_for(lambda: names <= services(store))
    end(run)


def test_killed_while_storing(any_python, target, agent, report, store):
    """Every window is whole or absent, no matter when the agent is killed."""
    target(any_python, "many_stacks.py", 2000, environment=named("many"))
    before = {}
    for _ in range(5):
        run = agent("--window", "0.2s", "-r", "1999")
        wait_for(lambda: len(store.windows()) > len(before) + 1)
        moment_s = time.monotonic() + 0.3 * random.random()
        wait_for(lambda: time.monotonic() >= moment_s)
        run.process.kill()
        run.finish()
        windows = store.check()
        assert windows.items() >= before.items()
        before = windows
    assert total(report()) == sum(row[1] for row in before.values())


@pytest.fixture
def forgetting(any_python, target, agent, store):
    """forgetting(): an agent that has removed its first windows."""
    def start():
        target(any_python, "many_stacks.py", 2000, environment=named("many"))
        target(any_python, "busy.py", environment=named("web"))
        run = agent("--window", "0.2s", "-r", "3999", "--store-size", "1M", "-v")
        wait_for(lambda: min(store.windows(), default=1) > 10)
        return run
    return start


@pytest.mark.prove("cost")
@pytest.mark.alone
def test_retention_keeps_the_size(forgetting, store, measured):
    run = forgetting()
    newest, sizes = max(store.windows()), []
    wait_for(lambda: sizes.append(store.bytes()) or max(store.windows()) > newest + 15)
    end(run)
    size = os.path.getsize(store.path)
    measured("a store of at most 1 MiB, with its write-ahead log", "%d KiB" % (max(sizes) >> 10), "< 4096")
    measured("a store of at most 1 MiB", "%d KiB" % (size >> 10), "< 1536")
    assert max(sizes) < 4 << 20 and size < 1.5 * (1 << 20)


def test_retention(forgetting, report, store):
    """After the agent removes windows and profile entries, services and functions still match."""
    run = forgetting()
    run.wait_said("the profile begins anew")
    wait_for(lambda: services(store) >= {own("many"), own("web")})
    end(run)
    assert run.status == 0, run.stderr
    windows = store.check()
    assert 1 not in windows and windows
    rows = report()
    assert total(rows) == sum(row[1] for row in windows.values())
    for service, frames, _ in rows:
        functions = [re.fullmatch(r"function_(\d+) \(many_(\d+).py.*", frame) for frame in frames]
        assert service != own("web") or not any(functions)
        assert all(match[1] == match[2] for match in functions if match)


def cpu_seconds_of(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.prove("cost")
@pytest.mark.alone
def test_reports_of_a_busy_day_are_fast(binary, tool, store, tmp_path, measured):
    """24 hours of 200 services.  On a fast idle machine a report takes about one second of CPU time, and
    generating the day about four."""
    made = cpu_seconds_of(tool("synthetic_day"), store.folder, "200", "8640", str(int(time.time())))
    assert os.path.getsize(store.path) < 120 << 20
    command = [binary, "report", "-q", "--store", store.folder, "-o", tmp_path / "report", "--since"]
    for words in (["25h", "-f", "text"], ["25h", "-f", "html"], ["25h", "-f", "pprof"], ["25h", "-f", "folded"],
                  ["12h", "--diff", "12h"]):
        ratio = min(cpu_seconds_of(*command, *words) for _ in range(2)) / made
        measured("report of a day of 200 services (%s), in the CPU time that the day takes to make"
                 % " ".join(words), "%.2f" % ratio, "< 0.6")
        assert ratio < 0.6, words
        assert os.path.getsize(tmp_path / "report") > 100000


def test_store_age_removes_old_windows(any_python, target, agent, store):
    target(any_python, "busy.py", environment=named("web"))
    run = agent("--window", "0.2s", "--store-age", "1s")
    wait_for(lambda: min(store.windows(), default=1) > 5)
    end(run)
    assert store.check()


def test_a_full_disk_costs_windows_only(any_python, target, profile, report, tmp_path):
    """Windows are lost until there is room again.  Messages report the beginning and the end of it."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(folder)], check=True)
    try:
        store = Store(folder)
        target(any_python, "many_stacks.py", 2000, environment=named("many"))
        run = profile.start("agent", "--store", store.folder, "--window", "0.2s", "-r", "1999",
                            *LISTEN, files=False)
        run.wait_sampling()
        site = Site(run)
        run.wait_said("windows are lost until")
        wait_for(lambda: site.metrics()["pybpfprof_sink_windows_total"][
            'sink="store",result="lost"'] >= 10)
        subprocess.run(["mount", "-o", "remount,size=60m", str(folder)], check=True)
        wait_for(lambda: run.said().count("windows are accepted again") ==
                 run.said().count("windows are lost until"))
        end(run)
        assert run.status == 1
        # There may be several pairs: a window in between may have found room.
        said = len(re.findall("windows are lost until", run.stderr))
        assert said == len(re.findall("windows are accepted again", run.stderr)), run.stderr
        lost = re.search(r"store: (\d+) of \d+ windows were lost", run.stderr)
        assert 0 < said <= int(lost[1]), run.stderr
        windows = store.check()
        assert windows
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_removes_the_oldest_windows(any_python, target, agent, store):
    """The agent removes the oldest windows, with one message, and loses none.  First --store-size exceeds
    the disk, then it is lowered."""
    os.mkdir(store.folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", store.folder], check=True)
    try:
        target(any_python, "many_stacks.py", 300, environment=named("many"))
        said = []
        for size in "1G", "1M":
            run = agent("--window", "0.1s", "-r", "5999", "--listen", "off", "--store-size", size)
            oldest = min(store.windows(), default=1)
            wait_for(lambda: min(store.windows(), default=1) > oldest + 5 and len(store.windows()) > 3)
            end(run)
            assert run.status == 0, run.stderr
            said.append(run.stderr.count("removing the oldest windows"))
            assert store.check()
        assert said[0] == 1 and said[1] <= 1
    finally:
        subprocess.run(["umount", "-l", store.folder], check=True)


def fill(folder):
    """Fills the disk of FOLDER."""
    with open(os.path.join(folder, "of somebody else"), "wb", buffering=0) as file, \
            contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def test_it_starts_on_a_full_disk(any_python, target, agent, profile, store):
    """The agent uses the reserve file of an earlier run.  Without a reserve, it fails and its message says what
    to do, as do reports."""
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


@pytest.mark.parametrize("folder,says", [
    ("/dev/null/store", "cannot create folder"), ("/proc/store", "cannot create folder"),
    ("/nowhere/store", "run mkdir -p first")])
def test_a_folder_that_cannot_be_written(folder, says, profile):
    run = profile.attempt("agent", "--store", folder)
    assert run.status == 1
    assert says in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr


def test_one_agent_writes_at_a_time(any_python, target, agent, profile, report, store):
    """A second agent is refused, unless it starts while the first one ends.  Reports are not refused."""
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
        assert "is corrupt" in run.stderr and "move it away" in run.stderr
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
    (["report"], "--store DIR"), (["report", "--store", "x", "--since", "x"], "since 'x'"),
    (["report", "--store", "x", "--since", "1h", "--until", "2h"], "not before"),
    (["report", "--store", "x", "--label", "web"], "label 'web'"),
    (["report", "--store", "x", "--diff", "x"], "diff 'x'"),
    (["report", "--store", "x", "--diff", "1h", "-f", "speedscope"],
     "speedscope cannot show"),
    (["report", "--store", "x", "-f", "svg"], "format 'svg'"),
    (["report", "--store", "x", "-o", "x.svg"], "flame.html"),
    (["report", "--store", "x", "-o", "x.txt9"], "does not give the format")])
def test_wrong_usage(words, says, profile):
    run = profile.attempt(*words)
    assert run.status == 2
    assert says in run.stderr and len(run.stderr.splitlines()) == 1, run.stderr


@pytest.mark.parametrize("verb", ["agent", "report"])
def test_help(verb, profile):
    run = profile.attempt(verb, "--help")
    assert run.status == 0 and run.stderr == ""
    assert b"--store DIR" in run.stdout
    # Each option's text is beside it, or below a long option.
    text = run.stdout.decode().partition("Examples:")[0]
    options = [line for line in text.splitlines() if re.match(r"  (-\w,|   ) --", line)]
    assert len(options) > 8
    assert all(re.fullmatch(r".{26} \S.*|  +(-\w, )?--[a-z-]+ [A-Z]+", line) for line in options)
