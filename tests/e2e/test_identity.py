# SPDX-License-Identifier: BSD-2-Clause
"""The identity of real processes: its short name, command, user and start time."""

import os
import pwd
import shutil
import subprocess
import time
from unittest.mock import ANY

import pytest

from conftest import PATIENCE, PROGRAMS, wait_for
from test_changes import is_leaderless

IDLE = os.path.join(PROGRAMS, "idle.py")
WAIT = "import time; print('ready'); time.sleep(3600)"

# Options of the interpreter, and the first version that has them.  Version 2 has more.
OPTIONS = [
    ((2, 7), []),
    ((2, 7), ["-B", "-uEsS"]),
    ((2, 7), ["-Wignore", "-W", "ignore"]),
    ((2, 7), ["-bOW", "ignore", "-O"]),
    ((3, 6), ["-Ibuq", "-Xfaulthandler", "-X", "utf8"]),
    ((3, 7), ["--check-hash-based-pycs", "never", "-uX", "dev"]),
    ((3, 11), ["-PX", "no_debug_ranges"]),
]
OPTIONS_OF_2 = [["-3t", "-Q", "new"], ["-RQnew", "-t"]]


def options_of(python):
    """The lists of options that PYTHON has."""
    found = [options for since, options in OPTIONS if since <= python.version[:2]]
    return found + (OPTIONS_OF_2 if python.version < (3,) else [])


@pytest.fixture
def short_name(target, identity):
    """short_name(COMMAND): the short name of the process that COMMAND starts, once that prints "ready"."""
    def find(*command):
        started = target.start(list(command))
        found = identity(started.pid)["short_name"]
        started.end()
        return found
    return find


class TestShortName:
    def test_options(self, python, short_name, identity):
        """The program prints "ready" only if the interpreter parses the options the same way."""
        own = identity(os.getpid())["short_name"]
        for options in options_of(python):
            command = [*python.command, *options]
            assert short_name(*command, IDLE) == "idle.py"
            assert short_name(*command, "--", IDLE) == "idle.py"
            assert short_name(*command, "-uc", WAIT) == own
            assert short_name(*command, "-um", "timeit", "-n1", "-r1", "-s", "print('ready')",
                              "import time; time.sleep(3600)") == "timeit"

    def test_standard_input(self, python, short_name, tmp_path):
        program = tmp_path / "program"
        program.write_text(WAIT)
        for arguments in [], ["-"], ["--", "-"]:
            name = short_name("/bin/sh", "-euc", 'exec "$@" <"$0"', str(program), *python.command,
                              "-u", *arguments)
            assert name.startswith("python%d" % python.version[0])

    def test_folder_and_archive(self, any_python, short_name, tmp_path):
        folder = tmp_path / "application"
        folder.mkdir()
        with open(IDLE, encoding="utf-8") as idle:
            (folder / "__main__.py").write_text(idle.read())
        archive = shutil.make_archive(str(folder), "zip", str(folder))
        assert short_name(any_python.path, str(folder) + "/") == "application"
        assert short_name(any_python.path, archive) == "application.zip"

    def test_console_script(self, any_python, short_name, tmp_path):
        script = tmp_path / "serve"
        with open(IDLE, encoding="utf-8") as idle:
            script.write_text("#!%s -s\n%s" % (any_python.path, idle.read()))
        script.chmod(0o755)
        assert short_name("/usr/bin/env", "-u", "NONE", str(script)) == "serve"

    def test_runner(self, any_python, target, identity, short_name, tmp_path):
        """The name includes the application, also for a worker of it."""
        for runner in "uvicorn", "gunicorn":
            (tmp_path / runner).write_text(WAIT)
            command = [any_python.path, "-u", str(tmp_path / runner), "--reload", "shop:app"]
            assert short_name(*command) == runner + " shop:app"
        shutil.copy(os.path.join(PROGRAMS, "spawns.py"), str(tmp_path / "manage.py"))
        worker = target(any_python, str(tmp_path / "manage.py"), "text").said
        assert identity(worker)["short_name"] == "manage.py text"

    def test_unpacked_archive(self, any_python, target, identity, tmp_path):
        """An archive that PEX has unpacked.  Another program with the same $PEX has its own name."""
        folder = tmp_path / "unzipped_pexes" / "1" / "0a1b2c"
        folder.mkdir(parents=True)
        shutil.copy(os.path.join(PROGRAMS, "spawns.py"), str(folder / "__main__.py"))
        variable = {"PEX": "/srv/shop.pex"}
        started = target(any_python, str(folder), "text", environment=variable)
        assert [identity(pid)["short_name"] for pid in (started.pid, started.said)] == ["shop.pex"] * 2
        assert identity(target(any_python, IDLE, environment=variable).pid)["short_name"] == "idle.py"

    @pytest.mark.parametrize("title, name", [("gunicorn: worker [app]", "gunicorn app"),
                                             ("[celeryd: celery@host] -active-", "celeryd"),
                                             ("server", "server")])
    def test_title(self, title, name, python, target, identity):
        found = identity(target(python, "titled.py", title, "x" * 60).pid)
        assert (found["command"], found["short_name"]) == (title, name)

    @pytest.mark.pythons(since=(3, 6))
    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_multiprocessing(self, method, python, target, identity):
        child = target(python, "pool.py", method).said
        assert identity(child)["short_name"] == "pool.py"

    @pytest.mark.parametrize("how", ["text", "shell", "twice"])
    def test_worker(self, how, any_python, target, identity):
        """It has the name of its nearest ancestor whose command line names a program."""
        assert identity(target(any_python, "spawns.py", how).said)["short_name"] == "spawns.py"

    def test_worker_without_ancestors(self, any_python, target, identity):
        """The ancestors have ended: it is named like any other program."""
        parent = target(any_python, "spawns.py", "text", "later")
        parent.go()
        worker = int(parent.process.stdout.readline())
        parent.process.wait(PATIENCE)
        assert identity(worker)["short_name"] == "-c"

    def test_long_command_line(self, any_python, target, identity):
        found = identity(target(any_python, IDLE, 3600, "x" * 100000).pid)
        assert found["short_name"] == "idle.py"
        assert len(found["command"]) < 5000

    def test_first_thread_has_ended(self, any_python, target, identity):
        """The identity is read through the other threads."""
        started = target(any_python, "leaderless.py", "wait")
        before = identity(started.pid)
        started.go()
        wait_for(lambda: is_leaderless(started.pid))
        assert identity(started.pid) == dict(before, start_unix_ns=ANY)


class TestUser:
    def test_named(self, any_python, target, identity):
        nobody = pwd.getpwnam("nobody")
        started = target.start(["setpriv", "--reuid=%d" % nobody.pw_uid, "--clear-groups",
                                any_python.path, "-uc", WAIT])
        found = identity(started.pid)
        assert (found["uid"], found["user"]) == (str(nobody.pw_uid), "nobody")

    def test_sandbox_of_a_user(self, any_python, target, identity, require):
        """The user outside of the user namespace counts, not the one inside."""
        started = target.start([require("setpriv"), "--reuid=65534", "--clear-groups",
                                require("unshare"), "-U", "-r", any_python.path, "-uc", WAIT])
        assert identity(started.pid)["user"] == pwd.getpwuid(65534).pw_name


class TestStart:
    def test_time(self, any_python, target, identity):
        before = time.time()
        started = target(any_python, IDLE)
        found = int(identity(started.pid)["start_unix_ns"]) / 1e9
        assert before - 1 < found < time.time() + 1

    def test_no_such_process(self, tool):
        assert subprocess.run([tool("identity_dump"), str(2 ** 22 + 1)]).returncode == 1
