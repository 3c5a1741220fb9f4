# SPDX-License-Identifier: BSD-2-Clause
"""The real servers, on the loopback interface, and queries of their data."""

import base64
import collections
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import build_backends

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import push_servers  # noqa: E402

PATIENCE_S = 60
HOUR_S = 3600
PYROSCOPE_RINGS = ("compactor.ring", "distributor.ring", "overrides-exporter.ring",
                   "query-scheduler.ring", "store-gateway.sharding-ring")
PARCA_CONFIG = "object_storage: {bucket: {type: FILESYSTEM, config: {directory: ./data}}}\n"


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def pyroscope_arguments(port, options):
    # Without these options it announces the first network interface, on which nothing listens.
    rings = [word for ring in PYROSCOPE_RINGS
             for word in ("-%s.instance-addr=127.0.0.1" % ring, "-%s.store=inmemory" % ring)]
    return ["-target=all", "-server.http-listen-address=127.0.0.1",
            "-server.http-listen-port=%d" % port, "-server.grpc-listen-address=127.0.0.1",
            "-server.grpc-listen-port=%d" % free_port(), "-storage.backend=filesystem",
            "-storage.filesystem.dir=./shared", "-pyroscopedb.data-path=./data",
            "-self-profiling.disable-push", "-usage-stats.enabled=false", "-ring.store=inmemory",
            "-ingester.lifecycler.addr=127.0.0.1", "-ingester.min-ready-duration=0s",
            "-query-frontend.instance-addr=127.0.0.1", *rings, *options]


def parca_arguments(port, options):
    return ["--config-path=parca.yaml", "--http-address=127.0.0.1:%d" % port,
            "--storage-active-memory=268435456", "--debuginfo-cache-dir=./cache",
            # The default is a public server of symbols.
            "--debuginfod-upstream-servers=", *options]


def collector_arguments(port, options):
    return ["--config=collector.yaml", "--feature-gates=service.profilesSupport", *options]


ARGUMENTS = {"pyroscope": pyroscope_arguments, "parca": parca_arguments,
             "otelcol": collector_arguments}
COLLECTOR_EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy",
                                 "examples", "collector.yaml")


def write_collector_config(folder, port):
    """Writes the example with another address, and without the Collector's own metrics."""
    with open(COLLECTOR_EXAMPLE, encoding="utf-8") as file:
        text = file.read()
    assert text.count("endpoint: 127.0.0.1:4318") == 1 and "\nservice:\n" in text
    text = text.replace("endpoint: 127.0.0.1:4318", "endpoint: 127.0.0.1:%d" % port)
    text = text.replace("\nservice:\n", "\nservice:\n  telemetry: {metrics: {level: none}}\n")
    with open(os.path.join(folder, "collector.yaml"), "w", encoding="utf-8") as file:
        file.write(text)


class Lines:
    """A line of the Collector's output: a request, which refers to its tables by number."""

    def __init__(self, line):
        self.request = json.loads(line)
        tables = self.request["dictionary"]
        self.strings = tables["stringTable"]
        functions = [(self.strings[one.get("nameStrindex", 0)],
                      self.strings[one.get("filenameStrindex", 0)])
                     for one in tables["functionTable"]]
        frames = []
        for location in tables["locationTable"]:
            line = location.get("lines", [{}])[0]
            frames.append(push_servers.spell(*functions[line.get("functionIndex", 0)],
                                             int(line.get("line", 0))))
        self.stacks = [tuple(frames[index] for index in reversed(one.get("locationIndices", [])))
                       for one in tables["stackTable"]]

    def attributes(self, resource):
        return {self.strings[one["keyStrindex"]]: self.strings[one["value"]["stringValueStrindex"]]
                for one in resource["attributes"]}

    def add(self, service, sums):
        for resource in self.request["resourceProfiles"]:
            if self.attributes(resource["resource"])["service.name"] != service:
                continue
            for scope in resource["scopeProfiles"]:
                for profile in scope["profiles"]:
                    for sample in profile["samples"]:
                        sums[self.stacks[sample["stackIndex"]]] += sum(map(int, sample["values"]))


def varint(number):
    packed = b""
    while number > 0x7f:
        packed += bytes([number & 0x7f | 0x80])
        number >>= 7
    return packed + bytes([number])


def field(which, value):
    if isinstance(value, str):
        return varint(which << 3 | 2) + varint(len(value)) + value.encode()
    return varint(which << 3) + varint(value)


class Server:
    """A server of NAME that runs in FOLDER, ready."""

    def __init__(self, name, folder, options=(), headers=(), parca_config=PARCA_CONFIG):
        self.name, self.folder, self.headers = name, str(folder), dict(headers)
        self.port = free_port()
        with open(os.path.join(self.folder, "parca.yaml"), "w", encoding="ascii") as config:
            config.write(parca_config)
        write_collector_config(self.folder, self.port)
        self.log = open(os.path.join(self.folder, "log"), "wb")
        self.process = subprocess.Popen([build_backends.program_of(name), *ARGUMENTS[name](self.port, options)],
                                        cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT)
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            assert time.monotonic() < deadline and self.process.poll() is None, self.said()
            time.sleep(0.1)

    def is_ready(self):
        try:
            if self.name == "otelcol":
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return True
            return bool(self.get("/ready"))
        except (urllib.error.URLError, ConnectionError):
            return False

    def said(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-3000:]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def url(self, kind):
        return "%s+http://127.0.0.1:%d" % (kind, self.port)

    def get(self, path, body=None, kind="application/proto"):
        headers = dict(self.headers, **({"Content-Type": kind} if body else {}))
        request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.port, path), body, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.read()

    def written(self, service):
        """The same from the Collector's output."""
        sums = collections.Counter()
        try:
            with open(os.path.join(self.folder, "profiles.jsonl"), encoding="utf-8") as file:
                for line in file:
                    if line.endswith("\n"):
                        Lines(line).add(service, sums)
        except FileNotFoundError:
            pass
        return sums

    def stacks(self, service, of_type):
        """{frames, root first: value} of SERVICE, of the type "samples:count" or
        "cpu:nanoseconds"; None if it has no data."""
        if self.name == "otelcol":
            return self.written(service)
        query = 'process_cpu:%s:cpu:nanoseconds%s{service_name="%s"}'
        if self.name == "pyroscope":
            now_ms = int(time.time() * 1000)
            which, selector = query.split("%s{", 1)[0] % of_type, '{service_name="%s"}' % service
            merged = self.get("/querier.v1.QuerierService/SelectMergeProfile",
                              field(1, which) + field(2, selector) +
                              field(3, now_ms - HOUR_S * 1000) + field(4, now_ms + 60000))
            return push_servers.read_merged(merged)
        return self.parca_stacks(query % (of_type, ":delta", service))

    def parca_stacks(self, query):
        """The same from a Parca, by its own query."""
        moments = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
                   for seconds in (-HOUR_S, 60)]
        answer = self.get("/api/profiles/query?" + urllib.parse.urlencode({
            "mode": "MODE_MERGE", "report_type": "REPORT_TYPE_PPROF", "merge.query": query,
            "merge.start": moments[0], "merge.end": moments[1]}))
        # If there is no data, the answer is a page.
        return push_servers.read_merged(base64.b64decode(json.loads(answer)["pprof"])) \
            if answer.startswith(b"{") else None
