# SPDX-License-Identifier: BSD-2-Clause
"""Each format, read by the programs that use it.  The profiles are made by hand: every number is known.

The tests run `go tool pprof` and speedscope.  For readers of folded stacks that are not Debian packages,
they check the readers' parsing rules.
"""

import base64
import collections
import json
import os
import re
import subprocess

import pytest

from conftest import ROOT, parse_folded

OUTPUT = os.path.join(ROOT, os.environ.get("OUTPUT", ".output"))
CONSUMERS = os.path.join(ROOT, "tests", "e2e", "consumers")
SPEEDSCOPE = "speedscope@1.25.0"
TIMEOUT_S = 300

# The hand-made profile "plain": seconds of each thread's stacks; 0.01 s is a sample.
MAIN = ("main", "app.py", 10)
LOAD = ("Loader.load", "pkg/load.py", 20)
LOAD_NEXT = ("Loader.load", "pkg/load.py", 21)
FIB = ("fib", "pkg/fib.py", 5)
CUT = ("[deeper frames cut]", None, None)
NO_PYTHON = ("[no Python on this thread]", None, None)
PLAIN = {
    'Thread 100 "MainThread"': {(MAIN, LOAD): 0.30, (MAIN, LOAD_NEXT): 0.20,
                                (MAIN, FIB, FIB, FIB): 0.40, (CUT, FIB, FIB): 0.05},
    'Thread 101 "worker 1"': {(MAIN, LOAD): 0.10, (NO_PYTHON,): 0.05},
}
PLAIN_SAMPLES = 110

# The profile "machine", 100 samples: {(PID, program): samples}; one PID was reused.
MACHINE = {(10, "worker.py"): 30, (11, "worker.py"): 30, (20, "report.py"): 24,
           (11, "report.py"): 6, (30, None): 10}
CONTAINER = 4 * "4f5b3c9de7a8012b"
POD = "a1b2c3d4-0000-4000-8000-112233445566"
CGROUP = ("/kubepods.slice/kubepods-poda1b2c3d4-0000-4000-8000-112233445566.slice/"
          "cri-containerd-%s.scope" % CONTAINER)

# The profile "hostile": the Nth name has N samples, in its own process and thread.
HOSTILE_NAMES = 29
HOSTILE_SAMPLES = HOSTILE_NAMES * (HOSTILE_NAMES + 1) // 2


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory):
    """synthetic(KIND, FORMAT, OPTION...): the path of a hand-made profile."""
    program = os.path.join(OUTPUT, "synthetic_profile")
    assert os.access(program, os.X_OK), "%s is not built: run make unit-tests" % program
    made = {}

    def make(kind, format_name, *options):
        key = (kind, format_name) + options
        if key not in made:
            path = str(tmp_path_factory.mktemp("synthetic") / kind)
            subprocess.run([program, *options, kind, format_name, path], check=True,
                           timeout=TIMEOUT_S)
            made[key] = path
        return made[key]
    return make


class TestPprof:
    @pytest.fixture
    def pprof(self, require, tmp_path):
        """pprof(PATH, OPTION...): the output of `go tool pprof`."""
        go = require("go")

        def run(path, *options):
            environment = dict(os.environ, PPROF_TMPDIR=str(tmp_path))
            environment.setdefault("HOME", str(tmp_path))
            result = subprocess.run([go, "tool", "pprof", *options, path], stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, timeout=TIMEOUT_S, env=environment)
            assert result.returncode == 0, result.stderr.decode()
            return result.stdout.decode()
        return run

    @staticmethod
    def rows(text):
        """{name: (flat, cumulative)} of -top."""
        row = re.compile(r" *(\S+) +\S+% +\S+% +(\S+) +\S+%  (.*)")
        matches = filter(None, map(row.fullmatch, text.split("\n")))
        return {match[3]: (match[1], match[2]) for match in matches}

    def test_top(self, pprof, synthetic):
        text = pprof(synthetic("plain", "pprof"), "-top")
        assert "Type: cpu" in text
        assert re.search(r"Duration: 10s, Total samples = (1100ms|1\.10?s)", text)
        assert self.rows(text) == {
            "Loader.load": ("600ms", "600ms"),
            "fib": ("450ms", "450ms"),
            "[no Python on this thread]": ("50ms", "50ms"),
            "[deeper frames cut]": ("0", "50ms"),
            "main": ("0", "1000ms"),
        }

    def test_counts(self, pprof, synthetic):
        text = pprof(synthetic("plain", "pprof"), "-top", "-sample_index=samples")
        assert "Type: samples" in text
        assert self.rows(text)["main"] == ("0", "100")
        assert self.rows(text)["Loader.load"] == ("60", "60")

    def test_lines(self, pprof, synthetic):
        rows = self.rows(pprof(synthetic("plain", "pprof"), "-top", "-lines"))
        assert rows["Loader.load /srv/lib/pkg/load.py:20"] == ("400ms", "400ms")
        assert rows["Loader.load /srv/lib/pkg/load.py:21"] == ("200ms", "200ms")

    @staticmethod
    def tags(text):
        """{(label, value): seconds} of -tags; the value None has the label's total."""
        tags, key = {}, None
        for line in filter(None, text.split("\n")):
            total = re.fullmatch(r" *(\w+): Total ([\d.]+)(m?s)(?: of .*)?", line)
            value = re.fullmatch(r" *([\d.]+)(m?s) \( *[\d.]+%\): (.*)", line)
            assert total or value, line
            if total:
                key, number, unit = total.groups()
                name = None
            else:
                number, unit, name = value.groups()
            tags[key, name] = float(number) / (1000 if unit == "ms" else 1)
        return tags

    def test_labels(self, pprof, synthetic):
        path = synthetic("plain", "pprof")
        assert self.tags(pprof(path, "-tags")) == {
            ("command", None): 1.1, ("command", "python3 app.py"): 1.1,
            ("pid", None): 1.1, ("pid", "100"): 1.1,
            ("thread", None): 1.1, ("thread", "MainThread"): 0.95, ("thread", "worker 1"): 0.15,
            ("tid", None): 1.1, ("tid", "100"): 0.95, ("tid", "101"): 0.15,
        }
        text = pprof(path, "-top", "-tagfocus=thread=worker 1")
        assert self.rows(text)["Loader.load"] == ("100ms", "100ms")

    def test_processes(self, pprof, synthetic):
        path = synthetic("machine", "pprof")
        tags = self.tags(pprof(path, "-tags"))
        assert {key: seconds for key, seconds in tags.items()
                if key[0] not in ("thread", "tid", "command")} == {
            ("pid", None): 1.0, ("pid", "10"): 0.3, ("pid", "11"): 0.36, ("pid", "20"): 0.24,
            ("pid", "30"): 0.1,
            ("process", None): 0.9, ("process", "worker.py"): 0.6, ("process", "report.py"): 0.3,
            ("container_id", None): 0.6, ("container_id", CONTAINER): 0.6,
            ("cgroup", None): 0.9, ("cgroup", CGROUP): 0.6,
            ("cgroup", "/system.slice/report.service"): 0.3,
            ("pod_uid", None): 0.6, ("pod_uid", POD): 0.6,
            ("user", None): 0.9, ("user", "www-data"): 0.6, ("user", "root"): 0.3,
        }
        assert tags["command", "python3 worker.py --queue low"] == 0.3
        for focus, samples in (("process=worker", "60"), ("command=queue low", "30"), ("11", "36"),
                               ("container_id=^4f5b3c9de7a8", "60"), ("cgroup=report", "30")):
            text = pprof(path, "-top", "-sample_index=samples", "-tagfocus=" + focus)
            assert "Showing nodes accounting for %s," % samples in text, focus

    def test_processes_at_the_root(self, pprof, synthetic):
        text = pprof(synthetic("machine", "pprof"), "-top", "-sample_index=samples",
                     "-tagroot=process")
        rows = self.rows(text)
        assert rows["worker.py"] == ("0", "60") and rows["report.py"] == ("0", "30")

    def test_traces(self, pprof, synthetic):
        text = pprof(synthetic("plain", "pprof"), "-traces")
        traces = [block for block in re.split(r"-{5}\S+\n", text) if "MainThread" in block]
        stacks = [re.findall(r"^ +(?:\d+m?s +)?(\S.*)$", trace, re.MULTILINE) for trace in traces]
        assert ["Loader.load", "main"] in [stack[-2:] for stack in stacks]
        assert ["fib", "fib", "fib", "main"] in [stack[-4:] for stack in stacks]

    def test_comments(self, pprof, synthetic):
        lines = pprof(synthetic("plain", "pprof"), "-comments").splitlines()
        assert lines[0].startswith("pybpfprof ")
        assert lines[1] == 'PID 100: python3 </title> "app".py'
        assert lines[2].startswith("110 samples of 110 events in 10.0 s at 100 Hz")

    @staticmethod
    def raw_values(raw):
        return [tuple(map(int, pair))
                for pair in re.findall(r"^ +(\d+) +(\d+): [\d ]+$", raw, re.MULTILINE)]

    def test_raw(self, pprof, synthetic):
        raw = pprof(synthetic("plain", "pprof"), "-raw")
        assert "PeriodType: cpu nanoseconds\nPeriod: 10000000\n" in raw
        assert "Time: 2024-01-02 03:04:05" in raw
        assert "samples/count cpu/nanoseconds[dflt]" in raw
        assert self.raw_values(raw) == [(count, count * 10000000)
                                        for count in (30, 20, 40, 5, 10, 5)]
        # Go 1.19 prints no columns, and numbers locations in the order of the samples.
        locations = re.findall(r"^ +(\d+): 0x0 (?:M=1 )?(.*?):(\d+)(?::0)? s=(\d+)\(\)$", raw,
                               re.MULTILINE)
        assert sorted(int(number) for number, *_ in locations) == list(range(1, 7))
        assert {(function, int(line), int(start)) for _, function, line, start in locations} == {
            ("main /srv/app.py", 10, 1), ("fib /srv/lib/pkg/fib.py", 5, 3),
            ("Loader.load /srv/lib/pkg/load.py", 20, 15),
            ("Loader.load /srv/lib/pkg/load.py", 21, 15),
            ("[deeper frames cut] ", 0, 0), ("[no Python on this thread] ", 0, 0)}

    def test_sequential_ids(self, pprof, synthetic):
        raw = pprof(synthetic("tree", "pprof", "-n", "3000"), "-raw")
        ids = re.findall(r"^ +(\d+): 0x0 ", raw[raw.index("Locations"):], re.MULTILINE)
        assert [int(number) for number in ids] == list(range(1, 3001))

    def test_hostile_names(self, pprof, synthetic):
        path = synthetic("hostile", "pprof")
        counts = [count for count, _ in self.raw_values(pprof(path, "-raw"))]
        assert counts == list(range(1, HOSTILE_NAMES + 1))
        rows = self.rows(pprof(path, "-top", "-nodefraction=0", "-sample_index=samples"))
        for name, count in (("</script><b onload=x>", "1"), ("semi;colon;", "5"),
                            ("ends in 123", "7"), ("<module>", "23"), ("<lambda>", "24"),
                            ("operator<<(std::vector<int>)[abi]", "25"), ("_ZN3foo3barEv", "26"),
                            ("<unnamed>", "28"), ("x" * 4096, "29")):
            assert rows[name] == (count, count), name

    def test_rewritten_by_pprof(self, pprof, synthetic, tmp_path):
        """pprof validates a profile and writes it again.  No sample may be lost."""
        for kind in "plain", "hostile", "machine":
            path = synthetic(kind, "pprof")
            again = str(tmp_path / kind)
            pprof(path, "-proto", "-output=" + again)
            assert sorted(self.raw_values(pprof(again, "-raw"))) == \
                sorted(self.raw_values(pprof(path, "-raw")))

    def test_many_frames(self, pprof, synthetic):
        path = synthetic("tree", "pprof", "-n", "30000", "-m", "4")
        text = pprof(path, "-top", "-sample_index=samples", "-nodecount=5")
        assert re.search(r"of 30000 total", text)


@pytest.fixture(scope="session")
def speedscope_page(require):
    """The path of speedscope's page, installed on first use."""
    folder = os.path.join(OUTPUT, "npm", SPEEDSCOPE)
    page = os.path.join(folder, "node_modules", "speedscope", "dist", "release", "index.html")
    if not os.path.exists(page):
        os.makedirs(folder, exist_ok=True)
        install = [require("npm"), "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts",
                   SPEEDSCOPE]
        try:
            result = subprocess.run(install, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S)
            reason = result.returncode and result.stdout.decode().strip()
        except subprocess.TimeoutExpired as error:
            reason = error
        # The registry may not answer, even on a machine that has all the tools.
        if reason:
            pytest.skip("no %s from npm: %s" % (SPEEDSCOPE, reason))
    return page


@pytest.fixture
def speedscope(require, speedscope_page, tmp_path):
    """speedscope(PATH, NAME): what speedscope exports after importing PATH as NAME."""
    chromium = require("chromium")

    def run(path, name):
        with open(path, "rb") as profile:
            content = base64.b64encode(profile.read()).decode()
        with open(os.path.join(CONSUMERS, "speedscope_import.js"), encoding="utf-8") as consumer:
            code = consumer.read()
        script = tmp_path / "script.js"
        script.write_text("const input = %s;\n%s"
                          % (json.dumps({"name": name, "base64": content}), code))
        result = subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-dev-shm-usage",
             "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
             "--user-data-dir=%s" % (tmp_path / "browser"), "--virtual-time-budget=60000",
             "--dump-dom", "file://%s#localProfilePath=%s" % (speedscope_page, script)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_S,
            env=dict(os.environ, HOME=str(tmp_path)))
        reports = re.findall(r'<output id="report">([^<]*)', result.stdout.decode())
        assert reports, result.stderr.decode()
        report = json.loads(base64.b64decode(reports[0]))
        assert "saved" in report, report
        return report["saved"]
    return run


def weights(saved):
    """{thread's name: {stack of (name, file, line), root first: weight}}."""
    frames = [(frame["name"], frame.get("file"), frame.get("line"))
              for frame in saved["shared"]["frames"]]
    threads = {}
    for profile in saved["profiles"]:
        stacks = threads[profile["name"]] = collections.Counter()
        stack, since = [], profile["startValue"]
        for event in profile["events"]:
            if event["at"] > since:
                stacks[tuple(stack)] += event["at"] - since
                since = event["at"]
            if event["type"] == "O":
                stack.append(frames[event["frame"]])
            else:
                assert stack.pop() == frames[event["frame"]]
        assert not stack and since == pytest.approx(profile["endValue"])
    return threads


class TestSpeedscope:
    def test_plain(self, speedscope, synthetic):
        saved = speedscope(synthetic("plain", "speedscope"), "plain.speedscope.json")
        found = weights(saved)
        assert saved["name"] == 'PID 100: python3 </title> "app".py'
        assert [profile["unit"] for profile in saved["profiles"]] == ["seconds", "seconds"]
        assert list(found) == list(PLAIN)
        for thread, stacks in PLAIN.items():
            assert found[thread] == pytest.approx(stacks)

    def test_processes(self, speedscope, synthetic):
        saved = speedscope(synthetic("machine", "speedscope"), "machine.speedscope.json")
        found = {profile["name"]: profile["endValue"] for profile in saved["profiles"]}
        assert found == pytest.approx({
            'Process %d %sThread %d "MainThread"' % (pid, '"%s" ' % name if name else "", pid):
                samples / 100 for (pid, name), samples in MACHINE.items()})

    def test_full_filenames(self, speedscope, synthetic):
        saved = speedscope(synthetic("plain", "speedscope", "-F"), "plain.speedscope.json")
        files = {frame.get("file") for frame in saved["shared"]["frames"]}
        assert files == {"/srv/app.py", "/srv/lib/pkg/load.py", "/srv/lib/pkg/fib.py", None}

    def test_hostile_names(self, speedscope, synthetic):
        path = synthetic("hostile", "speedscope")
        with open(path, encoding="utf-8") as written:
            expected = {frame["name"] for frame in json.load(written)["shared"]["frames"]}
        saved = speedscope(path, "hostile.json")
        found = {frame["name"] for frame in saved["shared"]["frames"]}
        # speedscope demangles C++ names.
        assert found ^ expected == {"_ZN3foo3barEv", "foo::bar()"}
        assert {"</script><b onload=x>", "semi;colon;", "<module>", "<unnamed>"} < expected
        assert len(saved["profiles"]) == HOSTILE_NAMES
        totals = [profile["endValue"] for profile in saved["profiles"]]
        assert totals == pytest.approx([n / 100 for n in range(1, HOSTILE_NAMES + 1)])

    def test_many_frames(self, speedscope, synthetic):
        saved = speedscope(synthetic("tree", "speedscope", "-n", "4000", "-m", "4"), "tree.json")
        assert len(saved["profiles"]) == 4
        assert sum(profile["endValue"] for profile in saved["profiles"]) == pytest.approx(40)

    def test_folded(self, speedscope, synthetic):
        for kind, samples in (("plain", PLAIN_SAMPLES), ("hostile", HOSTILE_SAMPLES),
                              ("machine", sum(MACHINE.values()))):
            path = synthetic(kind, "folded", "-t")
            with open(path, encoding="utf-8", newline="\n") as folded:
                expected = {tuple((frame.label, None, None) for frame in frames): count
                            for frames, count in parse_folded(folded.read())}
            saved = speedscope(path, kind + ".folded")
            assert list(weights(saved).values()) == [expected]
            assert saved["profiles"][0]["endValue"] == samples

    def test_pprof(self, speedscope, synthetic):
        saved = speedscope(synthetic("plain", "pprof"), "plain.pb.gz")
        found, = weights(saved).values()
        assert saved["profiles"][0]["unit"] == "nanoseconds"
        functions = collections.Counter()
        for stack, nanoseconds in found.items():
            functions[stack[-1][:2]] += nanoseconds / 1e9
        assert functions == pytest.approx({
            ("Loader.load", "/srv/lib/pkg/load.py"): 0.60, ("fib", "/srv/lib/pkg/fib.py"): 0.45,
            ("[no Python on this thread]", None): 0.05})


FOLDED_PROFILES = [
    ("plain", PLAIN_SAMPLES, []), ("plain", PLAIN_SAMPLES, ["-t", "-F"]),
    ("hostile", HOSTILE_SAMPLES, []), ("hostile", HOSTILE_SAMPLES, ["-t", "-F"]),
    ("machine", sum(MACHINE.values()), []), ("machine", sum(MACHINE.values()), ["-t"]),
    ("tree", 5000, ["-n", "5000", "-m", "3", "-t"]),
]


@pytest.fixture(params=FOLDED_PROFILES, ids=lambda profile: profile[0] + "".join(profile[2]))
def folded(request, synthetic):
    """(the lines of a profile, without line ends; its number of samples)."""
    kind, samples, options = request.param
    with open(synthetic(kind, "folded", *options), "rb") as stream:
        content = stream.read()
    assert content.endswith(b"\n")
    return content[:-1].split(b"\n"), samples


class TestFolded:
    def test_flamegraph(self, folded):
        """The last number is the count.  A second number before it would be read as another count."""
        lines, samples = folded
        total = 0
        for line in lines:
            match = re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", line.decode())
            total += int(match.group(2))
            stack = match.group(1)
            # If the reader cuts the stack, any frame may be the last one.
            for frame in stack.split(";"):
                assert frame and not re.fullmatch(r"(.*)\s+?(\d+(?:\.\d*)?)", frame), frame
        assert total == samples

    def test_pyroscope(self, folded):
        """The last space ends the stack; an integer follows; lines are shorter than 64 KiB."""
        lines, samples = folded
        counts = [line[line.rindex(b" ") + 1:] for line in lines]
        assert all(re.fullmatch(rb"[0-9]+", count) for count in counts)
        assert sum(map(int, counts)) == samples
        assert max(map(len, lines)) < 60 * 1024

    def test_firefox_profiler(self, folded):
        """The importer recognizes the format by the first line."""
        first = folded[0][0].decode()
        assert re.fullmatch(r"[^;]*(?:;[^;]*)* [0-9]+", first) and not first.startswith("{")

    def test_any_reader(self, folded):
        """Stacks are sorted and unique.  No character ends a line or moves the cursor."""
        stacks = [line[:line.rindex(b" ")].decode() for line in folded[0]]
        assert len(set(stacks)) == len(stacks)
        assert [stack.split(";") for stack in stacks] == sorted(s.split(";") for s in stacks)
        for stack in stacks:
            assert stack.splitlines() == [stack] and not re.search(r"[\x00-\x1f\x7f-\x9f]", stack)
