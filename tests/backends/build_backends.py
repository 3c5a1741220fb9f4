#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the servers that profiles are pushed to, for the tests.

    tests/backends/build_backends.py [NAME...]

They are compiled from what Go's module proxy has, by a Go that is new enough, and go to
$PYBPFPROF_TEST_CACHE/backends/NAME.  Modules with replacements cannot be installed by `go install`:
each is copied, and built as the main module.
"""

import collections
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "interpreters"))
import debian  # noqa: E402
from debian import CACHE, Failure, Outcome, Unreachable  # noqa: E402

GO_AT_LEAST = 1, 26
BUILD_TIMEOUT_S = 3600

# edits: of go.mod; package: the program's; files: what the module lacks, {path: content}.
Server = collections.namedtuple("Server", "module edits package files")

SERVERS = {
    "pyroscope": Server("github.com/grafana/pyroscope@v1.21.1",
                        # A module of its own, in a folder that the module does not have.
                        ["-replace=github.com/grafana/pyroscope/api="
                         "github.com/grafana/pyroscope/api@v1.5.0"], "./cmd/pyroscope", {}),
    "parca": Server("github.com/parca-dev/parca@v0.28.0", [], "./cmd/parca",
                    {"ui/packages/app/web/build/index.html": "<!doctype html><title>none</title>"}),
}


def say(text):
    print("backends: " + text, flush=True)


def folder_of(name):
    return os.path.join(CACHE, "backends", name)


def program_of(name):
    return os.path.join(folder_of(name), name)


def recipe_of(name):
    server = SERVERS[name]
    return " ".join([server.module, *server.edits])


def is_there(name):
    return debian.has_recipe(folder_of(name), recipe_of(name))


def find_go():
    """The newest Go's path; what is older than GO_AT_LEAST cannot build them."""
    path = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
    said = subprocess.check_output([path, "env", "GOVERSION"], universal_newlines=True) if path else ""
    version = re.match(r"go(\d+)\.(\d+)", said)
    if not version or tuple(map(int, version.groups())) < GO_AT_LEAST:
        raise Unreachable("it takes Go %d.%d or later" % GO_AT_LEAST)
    return path


def copy_module(go, module, folder):
    """The module's folder, copied so that it can be changed."""
    downloaded = json.loads(debian.run([go, "mod", "download", "-json", module], Unreachable,
                                       cwd=folder, env=environment()))
    source = os.path.join(folder, "source")
    shutil.copytree(downloaded["Dir"], source)
    debian.run(["chmod", "-R", "u+w", source], Failure)
    return source


def environment():
    return dict(os.environ, GOWORK="off", GOTOOLCHAIN="local", GOFLAGS="-mod=mod -buildvcs=false")


def compile_server(name, folder):
    server, go = SERVERS[name], find_go()
    source = copy_module(go, server.module, folder)
    for path, content in server.files.items():
        os.makedirs(os.path.dirname(os.path.join(source, path)), exist_ok=True)
        with open(os.path.join(source, path), "w", encoding="utf-8") as file:
            file.write(content)
    if server.edits:
        debian.run([go, "mod", "edit", *server.edits], Failure, cwd=source, env=environment())
    root = os.path.join(folder, "root")
    os.makedirs(root)
    debian.run([go, "build", "-trimpath", "-ldflags=-s -w", "-o", os.path.join(root, name),
                server.package], Failure, timeout=BUILD_TIMEOUT_S, cwd=source, env=environment())
    debian.write_recipe(root, recipe_of(name))
    debian.move_into_place(root, folder_of(name), folder)


def build_one(name):
    started = time.monotonic()
    say("%s: building; this takes some ten minutes" % name)
    with tempfile.TemporaryDirectory(prefix="building-", dir=os.path.join(CACHE, "backends")) as folder:
        compile_server(name, folder)
    say("%s: there, after %.0f s" % (name, time.monotonic() - started))


def provide(name):
    """The Outcome of building what is not there yet; one process at a time does."""
    os.makedirs(os.path.join(CACHE, "backends"), exist_ok=True)
    try:
        with open(os.path.join(CACHE, "backends", "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_there(name):
                build_one(name)
        return Outcome(name, "there", "")
    except Unreachable as reason:
        return Outcome(name, "unreachable", str(reason))
    except (Failure, OSError) as reason:
        return Outcome(name, "failed", str(reason))


def build(names=tuple(SERVERS)):
    """Builds what is not there yet.  An Outcome for each."""
    return [provide(name) for name in names]


if __name__ == "__main__":
    sys.exit(debian.run_as_program(SERVERS, build, __doc__))
