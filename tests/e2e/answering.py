# SPDX-License-Identifier: BSD-2-Clause
"""Programs that do their work once for each line on stdin and then print "done"."""

import contextlib
import json
import subprocess


@contextlib.contextmanager
def answering(python, script, source, *arguments):
    """Writes SOURCE to SCRIPT and runs it under PYTHON with ARGUMENTS."""
    script.write_text(source)
    with subprocess.Popen([*python.command, str(script), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def ask(process, times, request=b"go"):
    for _ in range(times):
        process.stdin.write(request + b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"


def record_while_asked(profile, folder, process, times, format_name, *arguments, request=b"go"):
    """Profiles PROCESS while it does its work TIMES.  Returns the profile's path, the ledger and the run."""
    path, stats = str(folder / "profile"), str(folder / "stats.json")
    run = profile.start("-p", process.pid, "-f", format_name, "-o", path, "--stats", stats, *arguments, files=False)
    run.wait_sampling()
    ask(process, times, request)
    run.interrupt().finish()
    assert run.status == 0, run.stderr
    with open(stats, encoding="utf-8") as file:
        return path, json.load(file), run
