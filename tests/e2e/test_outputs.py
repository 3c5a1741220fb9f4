# SPDX-License-Identifier: BSD-2-Clause
"""The profile's place, name and owner, and the messages of a recording."""

import collections
import contextlib
import fcntl
import gzip
import html.parser
import json
import os
import pty
import re
import signal
import stat
import struct
import subprocess
import sys
import termios
import time

import pytest

from conftest import PATIENCE, PROGRAMS, check_ledger, missing, parse_folded, wait_used

sys.path.insert(0, PROGRAMS)
import hostile_names  # noqa: E402

FORMATS = ("html", "folded", "pprof", "speedscope")


@pytest.fixture
def busy(any_python, target):
    return target(any_python, "busy.py")


def format_of(content):
    """The format of the bytes, recognized by their content."""
    if content.startswith(b"\x1f\x8b"):
        assert b"nanoseconds" in gzip.decompress(content)
        return "pprof"
    if content.lstrip().lower().startswith(b"<!doctype html"):
        assert content.rstrip().endswith(b"</html>")
        return "html"
    if content.startswith(b"{"):
        assert "speedscope" in json.loads(content)["$schema"]
        return "speedscope"
    assert parse_folded(content.decode())
    return "folded"


class TestPlaces:
    @pytest.mark.parametrize("name, expected", [
        ("out.html", "html"), ("out.folded", "folded"), ("out.pb.gz", "pprof"),
        ("out.speedscope.json", "speedscope")])
    def test_format_by_ending(self, profile, busy, tmp_path, name, expected):
        run = profile.attempt("-p", busy.pid, "-o", tmp_path / name, cpu=0.3)
        assert run.status == 0, run.stderr
        assert format_of((tmp_path / name).read_bytes()) == expected
        assert os.listdir(tmp_path) == [name]
        assert str(tmp_path / name) in run.stderr

    def test_standard_output_in_every_format(self, profile, busy):
        runs = {name: profile.start("-p", busy.pid, "-o", "-", "-f", name, files=False)
                for name in FORMATS}
        for run in runs.values():
            run.wait_sampling()
        wait_used(0.3, busy.pid)
        for name, run in runs.items():
            run.interrupt().finish()
            assert run.status == 0, run.stderr
            assert format_of(run.stdout) == name

    def test_option_beats_ending(self, profile, busy, tmp_path):
        path = tmp_path / "out.html"
        run = profile.attempt("-p", busy.pid, "-f", "folded", "-o", path, cpu=0.3)
        assert run.status == 0, run.stderr
        assert format_of(path.read_bytes()) == "folded"

    def test_default_name(self, profile, busy, tmp_path):
        run = profile.attempt("-p", busy.pid, cwd=tmp_path, cpu=0.3)
        assert run.status == 0, run.stderr
        names = os.listdir(tmp_path)
        assert len(names) == 1
        assert re.fullmatch(r"pybpfprof-%d-\d[0-9TZ_:.-]*\.html" % busy.pid, names[0])
        assert names[0] in run.stderr
        assert format_of((tmp_path / names[0]).read_bytes()) == "html"

    def test_pid_and_time_in_the_name(self, profile, busy, tmp_path):
        run = profile.attempt("-p", busy.pid, "-o", tmp_path / "a-%p-%t-b.folded", cpu=0.3)
        assert run.status == 0, run.stderr
        names = os.listdir(tmp_path)
        assert len(names) == 1
        assert re.fullmatch(r"a-%d-\d[0-9TZ_:.-]*-b\.folded" % busy.pid, names[0])

    @pytest.mark.parametrize("name, use", [
        ("a.html", ": open it in a browser"), ("a.pb.gz", ": see it with `go tool pprof FILE`"),
        ("a.speedscope.json", ": open it at https://www.speedscope.app"), ("a.folded", "")])
    def test_the_last_lines(self, profile, busy, tmp_path, name, use):
        """The number of samples, and how to open the file.  The number of events is shown only with -v."""
        path = tmp_path / name
        run = profile.attempt("-p", busy.pid, "-o", path, cpu=0.3)
        lines = run.stderr.splitlines()
        assert re.match(r"pybpfprof: \d+ samples(, all whole$|: )", lines[-2]), run.stderr
        assert lines[-1] == "pybpfprof: wrote %s%s" % (path, use)
        assert "events" not in run.stderr
        assert re.search(r"\d+ samples of \d+ events", profile.attempt(
            "-v", "-p", busy.pid, "-o", path, cpu=0.3).stderr)

    def test_process_and_time_in_the_ledgers_name(self, profile, busy, tmp_path):
        run = profile.attempt("-p", busy.pid, "-o", tmp_path / "a.html", "--stats",
                              tmp_path / "a-%p-%t.json", cpu=0.5)
        assert run.status == 0, run.stderr
        written = str(next(tmp_path.glob("a-%d-2*.json" % busy.pid)))
        assert "wrote %s (the ledger)" % written in run.stderr

    def test_a_file_in_the_way_is_replaced(self, profile, busy, tmp_path):
        path = tmp_path / "out.folded"
        path.write_text("what was here before\n" * 1000)
        run = profile.attempt("-p", busy.pid, "-o", path, cpu=0.3)
        assert run.status == 0, run.stderr
        assert parse_folded(path.read_text())
        assert "before" not in path.read_text()

    def test_files_belong_to_the_user_of_sudo(self, profile, busy, tmp_path):
        output, stats = tmp_path / "out.html", tmp_path / "stats.json"
        run = profile.attempt("-p", busy.pid, "-o", output, "--stats", stats,
                              env=dict(os.environ, SUDO_UID="12345", SUDO_GID="23456"), cpu=0.3)
        assert run.status == 0, run.stderr
        for path in (output, stats):
            status = path.stat()
            assert (status.st_uid, status.st_gid) == (12345, 23456)
            assert stat.S_IMODE(status.st_mode) & 0o600 == 0o600

    def test_strange_sudo_ids_change_nothing(self, profile, busy, tmp_path):
        path = tmp_path / "out.html"
        run = profile.attempt("-p", busy.pid, "-o", path,
                              env=dict(os.environ, SUDO_UID="-1", SUDO_GID="x"), cpu=0.3)
        assert run.status == 0, run.stderr
        assert path.stat().st_uid == os.getuid()


def closed(which):
    """The prefix of a command that closes the descriptors of the redirections WHICH."""
    return ["sh", "-c", 'exec "$@" ' + which, "-"]


class TestClosedDescriptors:
    """A file that is opened in place of a closed descriptor would get the messages."""

    # Such a long stack causes a warning while the profile is written.
    LONG = "def %s(n):\n  if n: %s(n - 1)\n  while True: pass\nprint('ready', flush=True)\n%s(40)"

    @pytest.mark.parametrize("which", [">&- 2>&-", "<&- >&- 2>&-"])
    def test_nothing_is_mixed_into_the_profile(self, which, profile, any_python, target, tmp_path):
        name, path = "f" * 4000, tmp_path / "out.folded"
        deep = target.start([*any_python.command, "-c", self.LONG % (name, name, name)])
        told = profile.attempt("-p", deep.pid, "-o", path, cpu=0.3)
        assert "a folded stack takes" in told.stderr
        run = profile.attempt("-p", deep.pid, "-o", path, prefix=closed(which), cpu=0.3)
        assert run.status == 0 and not run.stdout and not run.stderr
        assert "pybpfprof" not in path.read_text() and parse_folded(path.read_text())

    def test_closed_standard_output(self, profile, busy):
        """The error is reported before sampling begins."""
        run = profile.attempt("-p", busy.pid, "-d", 1000, "-f", "folded", "-o", "-", prefix=closed(">&-"))
        assert run.status == 1
        assert run.stderr == ("pybpfprof: cannot write standard output: it is closed, or open only for reading: "
                              "choose another place with -o\n")

    def test_closed_descriptors_of_the_command(self, any_python, profile, tmp_path):
        """The command has none of them, as without the profiler."""
        script = ("import os, time\nlinks = [os.path.realpath('/proc/self/fd/%%d' %% fd) for fd in range(3)]\n"
                  "open(%r, 'w').write(' '.join(links))\nwhile time.process_time() < 0.3: pass")
        run = profile.attempt("-o", tmp_path / "out.folded", prefix=closed("<&- >&-"),
                              command=[*any_python.command, "-c", script % str(tmp_path / "links")])
        assert run.status == 0, run.stderr
        assert "/" not in (tmp_path / "links").read_text().split()

    def test_printing_to_a_closed_output(self, binary):
        for words in ["--version"], ["check"], ["check", "--json"]:
            run = subprocess.run([*closed(">&-"), binary, *words], stderr=subprocess.PIPE, check=False)
            assert run.returncode == 1
            assert run.stderr == b"pybpfprof: cannot write to standard output: Bad file descriptor\n"


class TestFailedWrites:
    def test_full_device(self, profile, busy):
        run = profile.attempt("-p", busy.pid, "-f", "html", "-o", "/dev/full", cpu=0.3)
        assert run.status == 1
        assert "/dev/full" in run.stderr and "No space left on device" in run.stderr
        assert stat.S_ISCHR(os.stat("/dev/full").st_mode)

    def test_full_standard_output(self, profile, busy):
        with open("/dev/full", "wb") as full:
            run = profile.attempt("-p", busy.pid, "-f", "folded", "-o", "-", stdout=full, cpu=0.3)
        assert run.status == 1
        assert "No space left on device" in run.stderr

    def test_full_disk_leaves_no_file(self, profile, busy, require, tmp_path):
        # Not in a mount namespace: it cannot be made in a chroot that is not a mount point.
        subprocess.run([require("mount"), "-t", "tmpfs", "-o", "size=8k", "none", tmp_path],
                       check=True)
        try:
            path = tmp_path / "out.html"
            path.write_text("old")
            run = profile.attempt("-p", busy.pid, "-o", path, cpu=0.3)
            assert run.status == 1, run.stderr
            assert "No space left on device" in run.stderr
            assert os.listdir(tmp_path) == ["out.html"] and path.read_text() == "old"
        finally:
            subprocess.run([require("umount"), "-l", tmp_path], check=True)

    def test_a_profile_that_cannot_be_written_is_saved_elsewhere(self, profile, busy, tmp_path):
        run = profile.attempt("-p", busy.pid, "-f", "folded", "-o", "/dev/full",
                              env=dict(os.environ, TMPDIR=str(tmp_path)), cpu=0.3)
        assert run.status == 1
        saved, = tmp_path.iterdir()
        assert "written to %s instead" % saved in run.stderr
        assert stat.S_IMODE(saved.stat().st_mode) == 0o600
        assert parse_folded(saved.read_text())

    def test_no_other_user_can_take_the_name(self, profile, busy, tmp_path):
        """In a folder where all may write, another user has made links with all names to be expected."""
        now = time.time()
        for second in range(120):
            words = time.strftime("%Y%m%d-%H%M%S", time.localtime(now + second))
            link = tmp_path / ("pybpfprof-%d-%s.folded" % (busy.pid, words))
            link.symlink_to(tmp_path / "another")
            os.lchown(link, 12345, 12345)
        run = profile.attempt("-p", busy.pid, "-f", "folded", "-o", "/dev/full",
                              env=dict(os.environ, TMPDIR=str(tmp_path)), cpu=0.3)
        saved, = (path for path in tmp_path.iterdir() if not path.is_symlink())
        assert "written to %s instead" % saved in run.stderr
        assert saved.name != "another" and parse_folded(saved.read_text())

    @pytest.mark.parametrize("variable", ["missing", None])
    def test_the_last_place_is_tmp(self, profile, busy, tmp_path, variable):
        """If TMPDIR does not exist or is not set, the profile is saved in /tmp."""
        environment = dict(os.environ)
        environment.pop("TMPDIR", None)
        if variable:
            environment["TMPDIR"] = str(tmp_path / variable)
        run = profile.attempt("-p", busy.pid, "-f", "folded", "-o", "/dev/full", env=environment, cpu=0.3)
        assert run.status == 1
        assert ("saved in %s/" % tmp_path in run.stderr) == bool(variable)
        saved = re.search("the profile was written to (/tmp/pybpfprof-[^/]+) instead", run.stderr)[1]
        with open(saved, encoding="ascii") as file:
            assert parse_folded(file.read())
        os.unlink(saved)

    def test_limit_of_the_file_size(self, profile, busy, tmp_path):
        """A profile too large for `ulimit -f` is reported.  SIGXFSZ does not kill the profiler."""
        run = profile.attempt("-p", busy.pid, "-o", tmp_path / "out.html",
                              prefix=["sh", "-c", 'ulimit -f 8; exec "$@"', "-"],
                              env=dict(os.environ, TMPDIR=str(tmp_path)), cpu=0.3)
        assert run.status == 1, run.stderr
        assert run.stderr.endswith(
            "pybpfprof: it cannot be saved in %s either: File too large\n"
            "pybpfprof: the profile is lost: it cannot be saved in /tmp either: File too large\n" % tmp_path)
        assert os.listdir(str(tmp_path)) == []

    def test_full_ledger(self, profile, busy, tmp_path):
        run = profile.attempt("-p", busy.pid, "-o", tmp_path / "out.folded",
                              "--stats", "/dev/full", cpu=0.3)
        assert run.status == 1
        assert "/dev/full" in run.stderr and "No space left on device" in run.stderr
        assert parse_folded((tmp_path / "out.folded").read_text())

    def test_closed_pipe(self, profile, busy):
        run = profile.start("-p", busy.pid, "-f", "html", "-o", "-", files=False, cpu=0.3)
        run.process.stdout.close()
        run.process.stdout = None
        run.finish()
        assert run.status == 1, run.stderr
        assert "Broken pipe" in run.stderr

    def test_folder_that_vanishes(self, profile, busy, tmp_path):
        folder = tmp_path / "folder"
        folder.mkdir()
        run = profile.start("-p", busy.pid, "-o", folder / "out.html", files=False)
        run.wait_sampling()
        for name in os.listdir(folder):
            os.unlink(folder / name)
        folder.rmdir()
        wait_used(0.5, busy.pid)
        run.interrupt().finish()
        assert run.status == 1, run.stderr
        assert str(folder) in run.stderr and "No such file or directory" in run.stderr


class TestMessages:
    def test_no_terminal(self, profile, busy, tmp_path):
        run = profile("-p", busy.pid, "-r", 499, cpu=0.3)
        lines = run.stderr.splitlines()
        assert "\r" not in run.stderr and "\x1b" not in run.stderr
        assert len(lines) == len(set(lines))
        table = [line for line in lines if re.search(r"\bleaf\b", line)]
        assert len(table) == 1
        own = sum(count for frames, count in run.stacks if frames[-1].name == "leaf")
        shares = [float(share) for share in re.findall(r"(\d+(?:\.\d+)?) ?%", table[0])]
        assert shares == pytest.approx([100 * own / run.samples,
                                        100 * run.count_name("leaf") / run.samples], abs=0.1)
        assert any(str(run.samples) in line.replace(",", "") for line in lines)
        assert run.output in run.stderr
        assert len(lines) <= 20

    def test_terminal(self, binary, busy, tmp_path):
        """Progress stays on one line, which is cleared at the end."""
        try:
            master, slave = pty.openpty()
        except OSError:
            missing("a terminal (devpts on /dev/pts)")
        process = subprocess.Popen(
            [binary, "-p", str(busy.pid), "-d", "60", "-o", str(tmp_path / "out.html")],
            stderr=slave, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(slave)
        text, progress = b"", []
        while True:
            try:
                text += os.read(master, 4096)
            except OSError:
                break
            parts = text.replace(b"\r\n", b"\n").decode().split("\r")
            progress = [part for part in parts[:-1] if re.search(r"\b\d+(\.\d+)? ?(s )?(of|/) ?60\b", part)]
            if len(progress) == 2:
                process.send_signal(signal.SIGINT)
        os.close(master)
        assert process.wait(timeout=PATIENCE) == 0
        assert len(progress) >= 2, text
        assert all("lost" in part and "sample" in part for part in progress)

    def test_progress_fits_any_terminal(self, binary, busy, tmp_path):
        """Also one that becomes narrower: a wrapped line would not be cleared, and would scroll."""
        try:
            master, slave = pty.openpty()
        except OSError:
            missing("a terminal (devpts on /dev/pts)")
        text, widths = b"", []

        def resize(columns):
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))

        def show_progress(until):
            nonlocal text, widths
            while not until():
                text += os.read(master, 4096)
                widths = [len(line) for line in re.findall(rb"\r\x1b\[K([^\r\n]+)(?=\r)", text)]

        resize(30)
        process = subprocess.Popen(
            [binary, "-p", str(busy.pid), "-d", "60", "-o", str(tmp_path / "out.html")],
            stderr=slave, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(slave)
        show_progress(lambda: len(widths) >= 2)
        assert set(widths) == {29}
        resize(9)
        show_progress(lambda: widths[-1] == widths[-2] == 8)
        assert set(widths) == {29, 8}
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):
            show_progress(lambda: False)
        os.close(master)
        assert process.wait(timeout=PATIENCE) == 0

    def test_ten_hottest(self, any_python, target, profile):
        """The ten functions with the most own samples in the profile, which has more functions."""
        run = profile("-p", target(any_python, "kinds.py").pid, "-r", 999, "-F", cpu=1)
        told = re.findall(r"^ +([\d.]+)% +([\d.]+)%  (.+)$", run.stderr, re.MULTILINE)
        own, total = collections.Counter(), collections.Counter()
        for frames, count in run.stacks:
            own[frames[-1].label] += count
            for label in {frame.label for frame in frames}:
                total[label] += count
        assert len(own) > 10 and len(told) == 10
        assert [float(row[0]) for row in told] == [
            round(100 * count / run.samples, 1) for _, count in own.most_common(10)]
        for self_share, total_share, name in told:
            assert float(self_share) == round(100 * own[name] / run.samples, 1)
            assert float(total_share) == round(100 * total[name] / run.samples, 1)

    def test_quiet(self, profile, busy):
        assert profile("-p", busy.pid, "-q", cpu=0.3).stderr == ""

    def test_quiet_still_reports_errors(self, profile):
        run = profile.attempt("-q", "-p", 2)
        assert run.status == 3 and "kernel thread" in run.stderr

    def test_verbose_says_more(self, profile, busy):
        plain = profile("-p", busy.pid, cpu=0.3)
        verbose = profile("-p", busy.pid, "-v", cpu=0.3)
        assert len(verbose.stderr.splitlines()) > len(plain.stderr.splitlines())
        assert re.search(r"sampling \d+ ms after start", verbose.stderr)


class TestLedger:
    FIELDS = {"rate_hz", "duration_s", "events", "samples", "python", "no_python", "truncated",
              "lost", "errors", "stacks", "code_objects"}

    def test_fields(self, profile, busy):
        run = profile("-p", busy.pid, cpu=0.3)
        assert self.FIELDS <= set(run.ledger)
        assert run.ledger["rate_hz"] == 99
        assert run.ledger["stacks"] == len({tuple(frames) for frames, _ in run.stacks})
        assert 2 <= run.ledger["code_objects"] <= 10

    def test_with_standard_output(self, profile, busy, tmp_path):
        path = tmp_path / "stats.json"
        run = profile.attempt("-p", busy.pid, "-o", "-", "-f", "folded", "--stats", path, cpu=0.3)
        ledger = json.loads(path.read_text())
        check_ledger(ledger)
        assert sum(count for _, count in parse_folded(run.stdout.decode())) == ledger["samples"]


class Page(html.parser.HTMLParser):
    """The elements and attributes of a page, as a browser tells them apart."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.attributes = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}


def test_dev_stdout(profile, busy, tmp_path):
    """Redirected to a file, /dev/stdout leads to that file: neither is replaced."""
    path = tmp_path / "profile.folded"
    with open(str(path), "wb") as output:
        run = profile.attempt("-p", busy.pid, "-f", "folded", "-o", "/dev/stdout",
                              stdout=output, cpu=0.5)
        assert os.fstat(output.fileno()).st_size > 0
    assert run.status == 0, run.stderr
    assert "spin (" in path.read_text()
    assert os.path.islink("/dev/stdout")


def test_hostile_command_line(any_python, target, profile):
    words = ["x" * 3000, "semi;colon", "\"'", b"\xff\xfe", "li\nne\r", "\x1b[1m\u202e", "--last 99"]
    hostile = target.start([*any_python.command, os.path.join(PROGRAMS, "busy.py"), *words])
    other = target(any_python, "busy.py")
    run = profile("-p", hostile.pid, "-p", other.pid, cpu=0.3)
    roots = {frames[0].label for frames, _ in run.stacks}
    label, = {root for root in roots if root.startswith("process %d:" % hostile.pid)}
    assert len(roots) == 2 and len(label) < 280
    assert " ... xxx" in label and re.search(
        r'xxx semi:colon "\' \\xff\\xfe li\\x0ane\\x0d \\x1b\[1m\\u202e --last 99"$', label)
    shown = profile.attempt("-p", hostile.pid, "-f", "text", "-o", "-", cpu=0.3).stdout.decode()
    assert r"li\x0ane\x0d" in shown.splitlines()[0] and "\x1b" not in shown
    shown = profile.attempt("-p", hostile.pid, "-f", "pprof", "-o", "-", cpu=0.3).stdout
    shown = gzip.decompress(shown)
    assert rb" li\x0ane\x0d \x1b[1m\u202e " in shown and b"\x1b[" not in shown


class TestHostileNames:
    @pytest.fixture(scope="session")
    def outputs(self, python, session_target, session_profile):
        program = session_target(python, "hostile.py")
        runs = {name: session_profile.start("-p", program.pid, "-r", 999, "-o", "-", "-f", name,
                                           "--full-filenames", files=False)
                for name in FORMATS}
        for run in runs.values():
            run.wait_sampling()
        wait_used(1, program.pid)
        outputs = {name: run.interrupt().finish().stdout for name, run in runs.items()}
        program.end()
        return outputs

    def test_folded(self, python, outputs):
        lines = outputs["folded"].split(b"\n")
        assert lines.pop() == b""
        for line in lines:
            assert re.fullmatch(rb"[^\0-\x1f\x7f]+ [0-9]+", line)
            stack = line.rpartition(b" ")[0]
            assert not re.search(rb"\s\d+(\.\d*)?$", stack)
            assert stack.split(b";")[0].startswith(b"<module> (")
        stacks = parse_folded(outputs["folded"].decode("utf-8"))
        names = {frame.name for frames, _ in stacks for frame in frames}
        # Only characters that would break the line are replaced.
        assert {"</script><b onload=x>", 'quo"te\\back', "ends in 123", "<!--", "&lt:",
                "]]>{{x}}", hostile_names.shown("lone\udcffsurrogate", python.version)} <= names
        assert any(re.fullmatch("semi[^;]colon", name) for name in names)
        assert any(re.fullmatch("line[^\n]+break[^\r]*", name) for name in names)
        depths = [len(frames) for frames, _ in stacks]
        # Up to 3.6 the clock is a function of its own.
        assert max(depths) == (3 if python.version >= (3, 7) else 4)

    def test_speedscope(self, python, outputs):
        frames = json.loads(outputs["speedscope"])["shared"]["frames"]
        names = {frame["name"] for frame in frames}
        assert {hostile_names.shown(name, python.version)
                for name in hostile_names.NAMES if name} <= names
        file = hostile_names.shown(hostile_names.FILE, python.version)
        assert file in {frame.get("file") for frame in frames}

    def test_pprof(self, python, outputs):
        raw = gzip.decompress(outputs["pprof"])
        for name in hostile_names.NAMES:
            assert hostile_names.plain(name, python.version).encode("utf-8") in raw
        file = hostile_names.plain(hostile_names.FILE, python.version)
        assert file.encode("utf-8") in raw
        assert not any(char.encode("utf-8") in raw for char in "\u202e\u2028")

    def test_html(self, outputs, busy, profile):
        plain = profile.attempt("-p", busy.pid, "-o", "-", "-f", "html", cpu=0.3)
        expected = Page(plain.stdout.decode("utf-8"))
        page = Page(outputs["html"].decode("utf-8"))
        assert page.elements == expected.elements
        assert page.attributes == expected.attributes
        assert "script" in page.elements and "onload" not in page.attributes
