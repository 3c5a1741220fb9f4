# SPDX-License-Identifier: BSD-2-Clause
"""A server that lists and watches pods as the Kubernetes API server does, or misbehaves as a test wants."""

import collections
import json
import queue
import time
import urllib.parse

from push_servers import Handler, start_server

Asked = collections.namedtuple("Asked", "time path query token")


def pod(uid, name, version="1", containers=(), node="a-node", **metadata):
    """A pod object in the API's format; CONTAINERS are (name, ID)."""
    statuses = [{"name": each, "image": each + ":1", "containerID": "containerd://" + identifier}
                for each, identifier in containers]
    return {"metadata": dict(uid=uid, name=name, namespace="shop", resourceVersion=version, **metadata),
            "spec": {"nodeName": node}, "status": {"containerStatuses": statuses}}


class ApiHandler(Handler):
    def do_GET(self):
        server = self.server.backend
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        token = (self.headers["Authorization"] or "").partition("Bearer ")[2]
        asked = Asked(time.monotonic(), url.path, query, token)
        server.asked.append(asked)
        if server.answer and server.answer(self, asked):
            return
        if token not in server.tokens:
            self.reply(401, "application/json", b'{"kind":"Status","code":401}')
        elif "watch" in query:
            self.watch(server)
        else:
            self.reply(200, "application/json", json.dumps(server.list()).encode())

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def tell(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def watch(self, server):
        """Sends events until one is None."""
        self.begin()
        while not server.ended.is_set():
            try:
                event = server.events.get(timeout=0.05)
            except queue.Empty:
                continue
            if event is None:
                break
            self.tell(event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n")
        self.tell(b"")


class ApiServer:
    """The hook answer(handler, asked) may answer a request itself, and returns whether it did."""

    def __init__(self, ended, certificate, *pods):
        self.ended, self.certificate = ended, certificate
        self.answer = None
        self.pods, self.version = list(pods), 10
        self.tokens = {"first"}
        self.asked = []
        self.events = queue.Queue()
        self.server = start_server(self, ApiHandler, 0)
        self.url = "https://127.0.0.1:%d" % self.server.server_address[1]

    def list(self):
        return {"kind": "PodList", "metadata": {"resourceVersion": str(self.version)},
                "items": self.pods}

    def tell(self, kind, one):
        """Queues an event for the watch."""
        self.events.put({"type": kind, "object": one})

    def lists(self):
        return [asked for asked in self.asked if "watch" not in asked.query]

    def watches(self):
        return [asked for asked in self.asked if "watch" in asked.query]

    def end(self):
        self.server.shutdown()
        self.server.server_close()
