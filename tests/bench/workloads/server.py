# SPDX-License-Identifier: BSD-2-Clause
"""server.py SHOWN: an asyncio server, and a process that sends it requests as fast as it responds.

A turn is a request with its response.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys

from shown import Shown, ready

CONNECTIONS = 8
READY_AFTER = 100  # requests: then the load is stable


def digest(numbers):
    total = 0
    for number in numbers:
        total = (total * 31 + number) % 1000003
    return total


def answer(line):
    request = json.loads(line)
    return json.dumps({"id": request["id"], "digest": digest(request["numbers"])}).encode() + b"\n"


class Server:
    def __init__(self, shown):
        self.shown = shown

    async def handle(self, reader, writer):
        while True:
            line = await reader.readline()
            if not line:
                break
            writer.write(answer(line))
            await writer.drain()
            self.shown.turn()
            if self.shown.values[0] == READY_AFTER:
                ready()
        writer.close()


async def serve():
    server = await asyncio.start_server(Server(Shown()).handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with subprocess.Popen([sys.executable, os.path.abspath(__file__), "--client", str(port)],
                          stdin=subprocess.DEVNULL):
        await server.serve_forever()


def request_forever(port):
    """Sends a request on each connection, then reads the responses, until the server ends."""
    os.sched_setaffinity(0, range(os.cpu_count()))
    streams = [socket.create_connection(("127.0.0.1", port)).makefile("rwb")
               for _ in range(CONNECTIONS)]
    request = json.dumps({"id": 1, "numbers": list(range(200))}).encode() + b"\n"
    try:
        while True:
            for stream in streams:
                stream.write(request)
                stream.flush()
            for stream in streams:
                if not stream.readline():
                    return
    except OSError:
        return


if sys.argv[1] == "--client":
    request_forever(int(sys.argv[2]))
else:
    asyncio.run(serve())
