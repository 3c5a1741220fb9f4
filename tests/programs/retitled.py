# SPDX-License-Identifier: BSD-2-Clause
"""retitled.py: writes over its environment once a line comes in, as setproctitle does, and forks a
worker that ends with it; says that one's number.
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
# The first two stand before the parenthesis.
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
