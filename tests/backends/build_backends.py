#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the servers for the tests: those that the agent uses, and those that query it.

    tests/backends/build_backends.py [NAME...]

They are compiled from modules of Go's module proxy, by a recent Go, and go to
$PYBPFPROF_TEST_CACHE/backends/NAME.  `go install` cannot install modules with replacements, so each
is copied, and built as the main module.  All builds together have $BUILD_SECONDS (7200 by default).
Servers that take longer are left out; Go keeps their compiled parts.
"""

import collections
import fcntl
import glob
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
BUILD_SECONDS = int(os.environ.get("BUILD_SECONDS", "7200"))

# module: None for the tests' own; edits: of go.mod; packages: of programs, the server's first;
# files: added to the module, {path: content}; replaced: how to resolve the module's replacements by
# folders that it lacks: NONE removes them, a version takes the published modules; variables: set in
# the program.
Server = collections.namedtuple("Server", "module edits packages files replaced variables",
                                defaults=({}, None, {}))
NONE = ""
# Prefix of a build's folder, which remains if the build is killed.
BUILDING = "building-"
HERE = os.path.dirname(os.path.abspath(__file__))
COLLECTOR = {"go.opentelemetry.io/collector/" + name: version for names, version in (
    (("component", "confmap", "confmap/provider/envprovider", "confmap/provider/fileprovider",
     "exporter", "receiver"), "v1.68.0"),
    (("otelcol", "receiver/otlpreceiver", "service"), "v0.162.0")) for name in names}
COLLECTOR["github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"] = "v0.162.0"


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


KUBERNETES = "v1.36.3"

SERVERS = {
    "pyroscope": Server("github.com/grafana/pyroscope@v1.21.1",
                        # A separate module, whose folder is not part of this one.
                        ["-replace=github.com/grafana/pyroscope/api="
                         "github.com/grafana/pyroscope/api@v1.5.0"], ["./cmd/pyroscope"]),
    "parca": Server("github.com/parca-dev/parca@v0.28.0", [], ["./cmd/parca"],
                    {"ui/packages/app/web/build/index.html": "<!doctype html><title>none</title>"}),
    "otelcol": Server(None, ["-require=%s@%s" % each for each in sorted(COLLECTOR.items())], ["."],
                      {"main.go": read("collector.go")}),
    "etcd": Server("go.etcd.io/etcd/server/v3@v3.6.8", [], ["."], replaced=NONE),
    "kube-apiserver": Server(
        "k8s.io/kubernetes@" + KUBERNETES, [], ["./cmd/kube-apiserver"],
        replaced=KUBERNETES.replace("v1.", "v0."),
        variables={"k8s.io/component-base/version.gitVersion": KUBERNETES,
                   "k8s.io/component-base/version.gitMajor": "1",
                   "k8s.io/component-base/version.gitMinor": KUBERNETES.split(".")[1]}),
}


def say(text):
    print("backends: " + text, flush=True)


def folder_of(name):
    return os.path.join(CACHE, "backends", name)


def program_of(name, program=None):
    """The path of the server, or of another PROGRAM that comes with it."""
    return os.path.join(folder_of(name), program or name)


def recipe_of(name):
    server = SERVERS[name]
    return " ".join([server.module, *server.edits]) if server.module else \
        " ".join([*server.edits, *server.files.values()])


def is_there(name):
    return debian.has_recipe(folder_of(name), recipe_of(name))


def find_go():
    """The path of Go, which must be at least GO_AT_LEAST."""
    path = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
    said = subprocess.check_output([path, "env", "GOVERSION"], universal_newlines=True) if path else ""
    version = re.match(r"go(\d+)\.(\d+)", said)
    if not version or tuple(map(int, version.groups())) < GO_AT_LEAST:
        raise Unreachable("it takes Go %d.%d or later" % GO_AT_LEAST)
    return path


def copy_module(go, module, folder):
    """Copies the module, so that it can be changed; returns the folder."""
    source = os.path.join(folder, "source")
    if not module:
        os.makedirs(source)
        debian.run([go, "mod", "init", "backend"], Failure, cwd=source, env=environment())
        return source
    downloaded = json.loads(debian.run([go, "mod", "download", "-json", module], Unreachable,
                                       cwd=folder, env=environment()))
    shutil.copytree(downloaded["Dir"], source)
    debian.run(["chmod", "-R", "u+w", source], Failure)
    return source


def environment():
    return dict(os.environ, GOWORK="off", GOTOOLCHAIN="local", GOFLAGS="-mod=mod -buildvcs=false")


def replacements(go, server, source):
    """The edits of go.mod that resolve replacements by folders."""
    if server.replaced is None:
        return
    module = json.loads(debian.run([go, "mod", "edit", "-json"], Failure, cwd=source,
                                   env=environment()))
    for each in module["Replace"] or []:
        path = each["Old"]["Path"]
        if server.replaced == NONE:
            yield "-dropreplace=" + path
        elif each["New"]["Path"].startswith("./staging/"):
            yield "-replace=%s=%s@%s" % (path, path, server.replaced)


def build_program(go, server, package, program, source, deadline):
    variables = ["-X %s=%s" % each for each in server.variables.items()]
    command = [go, "build", "-trimpath", "-ldflags=" + " ".join(["-s", "-w", *variables]), "-o",
               program, package]
    # The timeout ends shortly after the deadline, not before.
    left_s = max(deadline - time.monotonic(), 0) + 0.1
    try:
        debian.run(["timeout", "%.1f" % left_s, *command], Failure, timeout=None, cwd=source,
                   env=environment())
    except Failure:
        if time.monotonic() < deadline:
            raise
        raise Unreachable("it cannot be built in $BUILD_SECONDS") from None


def compile_server(name, folder, deadline):
    server, go = SERVERS[name], find_go()
    source = copy_module(go, server.module, folder)
    for path, content in server.files.items():
        os.makedirs(os.path.dirname(os.path.join(source, path)), exist_ok=True)
        with open(os.path.join(source, path), "w", encoding="utf-8") as file:
            file.write(content)
    edits = [*server.edits, *replacements(go, server, source)]
    if edits:
        debian.run([go, "mod", "edit", *edits], Failure, cwd=source, env=environment())
    root = os.path.join(folder, "root")
    os.makedirs(root)
    for package in server.packages:
        program = name if package == server.packages[0] else os.path.basename(package)
        build_program(go, server, package, os.path.join(root, program), source, deadline)
    debian.write_recipe(root, recipe_of(name))
    debian.move_into_place(root, folder_of(name), folder)


def build_one(name, deadline):
    started = time.monotonic()
    if started >= deadline:
        raise Unreachable("$BUILD_SECONDS are over")
    say("%s: building; this takes some ten minutes" % name)
    with tempfile.TemporaryDirectory(prefix=BUILDING, dir=os.path.join(CACHE, "backends")) as folder:
        compile_server(name, folder, deadline)
    say("%s: there, after %.0f s" % (name, time.monotonic() - started))


def provide(name, deadline):
    """Builds one server unless it exists; one process at a time builds.  Returns its Outcome."""
    os.makedirs(os.path.join(CACHE, "backends"), exist_ok=True)
    try:
        with open(os.path.join(CACHE, "backends", "lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in glob.glob(os.path.join(CACHE, "backends", BUILDING + "*")):
                shutil.rmtree(left)
            if not is_there(name):
                build_one(name, deadline)
        return Outcome(name, "there", "")
    except Unreachable as reason:
        return Outcome(name, "unreachable", str(reason))
    except (Failure, OSError) as reason:
        return Outcome(name, "failed", str(reason))


def build(names=tuple(SERVERS)):
    """Builds the missing servers.  Returns an Outcome for each."""
    deadline = time.monotonic() + BUILD_SECONDS
    return [provide(name, deadline) for name in names]


if __name__ == "__main__":
    sys.exit(debian.run_as_program(SERVERS, build, __doc__))
