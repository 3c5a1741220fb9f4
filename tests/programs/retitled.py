# SPDX-License-Identifier: BSD-2-Clause
"""retitled.py: once it reads a line, overwrites its environment, as setproctitle does, forks a worker that ends
with it, and prints the worker's PID.
"""

import ctypes
import os
import sys

FIELD_ENV_START = 49  # of /proc/PID/stat, from 0


def worker(parent):
    while os.getppid() == parent:
        sum(range(1000))


with open("/proc/self/stat") as stat:
    fields = stat.read().rpartition(")")[2].split()
# The split dropped the first two fields.
start, end = map(int, fields[FIELD_ENV_START - 2:FIELD_ENV_START])
print("ready")
sys.stdout.flush()
sys.stdin.readline()
ctypes.memset(start, 0, end - start)
with open("/proc/self/environ", "rb") as environment:
    assert not environment.read().strip(b"\0")
parent = os.getpid()
pid = os.fork()
if not pid:
    worker(parent)
    os._exit(0)
print(pid)
sys.stdout.flush()
os.waitpid(pid, 0)
