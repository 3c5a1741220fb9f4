# SPDX-License-Identifier: BSD-2-Clause
"""Servers that receive pushed profiles.  They parse them as the real ones do, or misbehave as a test wants.

Messages are decoded here by field numbers alone, independently of the agent's definitions.
"""

import base64
import collections
import gzip
import http.server
import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

PATHS = {"pyroscope": "/push.v1.PusherService/Push",
         "parca": "/api/profiles/writeraw",
         "otlp": "/v1development/profiles"}
ANSWERS = {"pyroscope": ("application/proto", b""),
           "parca": ("application/json", b"{}"),
           "otlp": ("application/x-protobuf", b"")}

# labels: a tuple of pairs; start, duration: ns; stacks: {frames, root first: count}
Profile = collections.namedtuple("Profile", "labels start duration stacks")
# Where a location is: its file and the file's addresses from START to LIMIT; "" and 0 if it has no file.
Place = collections.namedtuple("Place", "function file build_id address start limit")
NOWHERE = ("", "", 0, 0)


def varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at


def fields(data):
    """A message as {field number: [value]}.  A value is a number, or the bytes of a string or message."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        else:
            assert kind == 2, kind
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        found[key >> 3].append(value)
    return found


def packed(values):
    """The numbers of a packed repeated field."""
    numbers = []
    for value in values:
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            numbers.append(number)
    return numbers


def number(message, which):
    return message[which][0] if message[which] else 0


def spell(name, file, line):
    return "%s (%s:%d)" % (name, file, line) if file and line else \
        "%s (%s)" % (name, file) if file else name


def pprof_frames(profile, strings):
    """{location ID: its frame as text}"""
    functions = {number(one, 1): (strings[number(one, 2)], strings[number(one, 4)])
                 for one in map(fields, profile[5])}
    frames = {}
    for location in map(fields, profile[4]):
        line = fields(location[4][0])
        frames[number(location, 1)] = spell(*functions[number(line, 1)], number(line, 2))
    return frames


def read_merged(data):
    """{frames, root first: value} of a pprof file with one value type, as a server returns it."""
    profile = fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    frames = pprof_frames(profile, [text.decode() for text in profile[6]])
    stacks = collections.Counter()
    for sample in map(fields, profile[2]):
        value, = packed(sample[2])
        stacks[tuple(frames[one] for one in reversed(packed(sample[1])))] += value
    return stacks


def read_pprof(labels, data):
    profile = fields(gzip.decompress(data))
    strings = [text.decode() for text in profile[6]]
    assert strings[0] == ""
    types = [tuple(strings[number(fields(one), i)] for i in (1, 2)) for one in profile[1]]
    assert types == [("samples", "count"), ("cpu", "nanoseconds")]
    # Parca requires consecutive IDs from 1.
    for messages in profile[4], profile[5]:
        assert [number(fields(one), 1) for one in messages] == list(range(1, len(messages) + 1))
    frames = pprof_frames(profile, strings)
    stacks = collections.Counter()
    for sample in map(fields, profile[2]):
        assert not sample[3]
        count, nanoseconds = packed(sample[2])
        assert nanoseconds == count * number(profile, 12)
        stacks[tuple(frames[one] for one in reversed(packed(sample[1])))] += count
    return Profile(labels, number(profile, 9), number(profile, 10), stacks)


def pprof_places(data):
    profile = fields(gzip.decompress(data))
    strings = [text.decode() for text in profile[6]]
    functions = {number(one, 1): strings[number(one, 2)] for one in map(fields, profile[5])}
    mappings = {number(one, 1): (strings[number(one, 5)], strings[number(one, 6)], number(one, 2), number(one, 3))
                for one in map(fields, profile[3])}
    for location in map(fields, profile[4]):
        file, build_id, start, limit = mappings.get(number(location, 2), NOWHERE)
        yield Place(functions[number(fields(location[4][0]), 1)], file, build_id, number(location, 3), start, limit)


def pyroscope_files(body):
    """(labels, pprof file) of each profile in a request to Pyroscope."""
    for series in map(fields, fields(body)[1]):
        labels = [tuple(fields(label)[i][0].decode() for i in (1, 2)) for label in series[1]]
        for sample in map(fields, series[2]):
            yield tuple(sorted(labels)), sample[1][0]


def parca_files(body):
    """(labels, pprof file) of each profile in a request to Parca."""
    request = json.loads(body)
    for series in request["series"]:
        labels = [(label["name"], label["value"]) for label in series["labels"]["labels"]]
        for sample in series["samples"]:
            yield tuple(sorted(labels)), base64.b64decode(sample["rawProfile"])


def read_pyroscope(body):
    return (read_pprof(*file) for file in pyroscope_files(body))


def read_parca(body):
    return (read_pprof(*file) for file in parca_files(body))


class Dictionary:
    """The dictionary tables of an OpenTelemetry request."""

    def __init__(self, message):
        self.strings = [text.decode() for text in message[5]]
        functions = [fields(one) for one in message[3]]
        stacks = [packed(fields(one)[1]) for one in message[7]]
        frames = []
        for location in map(fields, message[2]):
            line = fields(location[3][0]) if location[3] else fields(b"")
            function = functions[number(line, 1)]
            frames.append(spell(self.strings[number(function, 1)],
                                self.strings[number(function, 3)], number(line, 2)))
        assert self.strings[0] == "" and message[2][0] == message[3][0] == message[7][0] == b""
        assert 0 not in [index for stack in stacks for index in stack]
        self.stacks = [tuple(frames[index] for index in reversed(stack)) for stack in stacks]


def read_otlp(body):
    request = fields(body)
    dictionary = Dictionary(fields(request[2][0]))
    for resource in map(fields, request[1]):
        labels = []
        for attribute in map(fields, fields(resource[1][0])[1]):
            labels.append((attribute[1][0].decode(), fields(attribute[2][0])[1][0].decode()))
        for scope in map(fields, resource[2]):
            for profile in map(fields, scope[2]):
                stacks = collections.Counter()
                for sample in map(fields, profile[2]):
                    stacks[dictionary.stacks[number(sample, 1)]] += sum(packed(sample[4]))
                yield Profile(tuple(sorted(labels)), number(profile, 3), number(profile, 4), stacks)


def otlp_places(body):
    tables = fields(fields(body)[2][0])
    strings = [text.decode() for text in tables[5]]
    functions = [strings[number(fields(one), 1)] for one in tables[3]]
    attributes = []
    for attribute in map(fields, tables[6]):
        value = fields(attribute[2][0])[1] if attribute[2] else []
        attributes.append((strings[number(attribute, 1)], value[0].decode() if value else ""))
    mappings = []
    for mapping in map(fields, tables[1]):
        build_id = dict(attributes[one] for one in packed(mapping[5])).get("process.executable.build_id.gnu", "")
        mappings.append((strings[number(mapping, 4)], build_id, number(mapping, 1), number(mapping, 2)))
    for location in map(fields, tables[2][1:]):
        file, build_id, start, limit = mappings[number(location, 1)]
        yield Place(functions[number(fields(location[3][0]), 1)], file, build_id, number(location, 2), start, limit)


def pprof_values(data):
    """("type/unit", value) of each value of each sample of a pprof file."""
    profile = fields(gzip.decompress(data))
    types = ["/".join(profile[6][number(fields(one), i)].decode() for i in (1, 2)) for one in profile[1]]
    for sample in map(fields, profile[2]):
        yield from zip(types, packed(sample[2]))


def otlp_values(body):
    """("type/unit", value) of each sample of an OpenTelemetry request."""
    request = fields(body)
    strings = fields(request[2][0])[5]
    for resource in map(fields, request[1]):
        for scope in map(fields, resource[2]):
            for profile in map(fields, scope[2]):
                one = fields(profile[1][0])
                name = "/".join(strings[number(one, i)].decode() for i in (1, 2))
                for sample in map(fields, profile[2]):
                    yield name, sum(packed(sample[4]))


READERS = {"pyroscope": read_pyroscope, "parca": read_parca, "otlp": read_otlp}

Request = collections.namedtuple("Request", "time path headers body")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        backend = self.server.backend
        if backend.before and backend.before(self):
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = Request(time.monotonic(), self.path, self.headers, body)
        backend.seen.append(request)
        (backend.answer or backend.take)(self, request)

    def reply(self, status, kind="text/plain", body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def reset(self):
        """Resets the connection, as a crash would."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request, client_address):
        pass


def start_server(backend, handler, port):
    """A Server for BACKEND; with TLS if BACKEND has a certificate."""
    server = Server(("127.0.0.1", port), handler)
    server.backend = backend
    if backend.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*backend.certificate)
        # The handshake is done in each connection's thread, so that a silent client does not block others.
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


class Backend:
    """A server of KIND.  The hook before(handler) may end a request before its body is read.  The hook
    answer(handler, request) replaces take().  Both run in the connections' threads."""

    def __init__(self, kind, certificate=None):
        self.kind = kind
        self.before = self.answer = None
        self.seen = []   # all Requests, whatever the answer was
        self.taken = []  # the accepted ones
        self.ended = threading.Event()
        self.certificate = certificate
        self.server = None
        self.port = 0
        self.start()

    def start(self):
        """Starts the server; after stop() on the same port."""
        self.server = start_server(self, Handler, self.port)
        self.port = self.server.server_address[1]

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.server = None

    def end(self):
        self.ended.set()
        self.stop()

    def url(self, path=""):
        return "%s+http%s://127.0.0.1:%d%s" % (self.kind, "s" if self.certificate else "", self.port,
                                               path)

    def take(self, handler, request):
        self.taken.append(request)
        kind, body = ANSWERS[self.kind]
        handler.reply(200, kind, body)

    def bodies(self):
        for request in self.taken:
            assert request.path.endswith(PATHS[self.kind])
            is_packed = request.headers["Content-Encoding"] == "gzip"
            yield gzip.decompress(request.body) if is_packed else request.body

    def profiles(self):
        """The Profiles of all accepted requests."""
        return [profile for body in self.bodies() for profile in READERS[self.kind](body)]

    def places(self):
        """The Place of each location of each profile."""
        if self.kind == "otlp":
            return [place for body in self.bodies() for place in otlp_places(body)]
        files = {"pyroscope": pyroscope_files, "parca": parca_files}[self.kind]
        return [place for body in self.bodies() for _, file in files(body) for place in pprof_places(file)]

    def values(self):
        """{"type/unit": sum over all accepted requests}"""
        sums = collections.Counter()
        files = {"pyroscope": pyroscope_files, "parca": parca_files}
        for body in self.bodies():
            found = (otlp_values(body) if self.kind == "otlp" else
                     (pair for _, file in files[self.kind](body) for pair in pprof_values(file)))
            for name, value in found:
                sums[name] += value
        return sums

    def rows(self):
        """[(service, frames, count)], sorted like the rows of a report."""
        sums = collections.Counter()
        key = "service.name" if self.kind == "otlp" else "service_name"
        for profile in self.profiles():
            for frames, count in profile.stacks.items():
                sums[dict(profile.labels)[key], frames] += count
        return sorted((*which, count) for which, count in sums.items())


@pytest.fixture
def backend():
    """backend(KIND, CERTIFICATE): a Backend."""
    running = []

    def start(*arguments):
        running.append(Backend(*arguments))
        return running[-1]
    yield start
    for one in running:
        one.end()


class Authority:
    """Signs certificates."""

    def __init__(self, folder, name):
        self.folder, self.name = str(folder), name
        self.certificate, self.key = (os.path.join(self.folder, name + end)
                                      for end in (".crt", ".key"))
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-keyout", self.key, "-out", self.certificate, "-days", "2",
                     "-subj", "/CN=" + name)

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def sign(self, names):
        """(certificate, key) of a server."""
        path = os.path.join(self.folder, "%s-%d" % (self.name, len(os.listdir(self.folder))))
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", path + ".key", "-out", path + ".csr", "-subj", "/CN=server")
        with open(path + ".ext", "w", encoding="ascii") as file:
            file.write("subjectAltName=" + names)
        self.openssl("x509", "-req", "-in", path + ".csr", "-CA", self.certificate, "-CAkey",
                     self.key, "-CAcreateserial", "-days", "2", "-out", path + ".crt",
                     "-extfile", path + ".ext")
        return path + ".crt", path + ".key"


@pytest.fixture
def authority(require, tmp_path):
    """authority(NAME): an Authority."""
    require("openssl")
    return lambda name: Authority(tmp_path, name)
