# SPDX-License-Identifier: BSD-2-Clause
"""retitled.py: writes over its environment after a while, as setproctitle does, and forks a worker that
never ends.
"""

import ctypes
import os
import sys
import time

FIELD_ENV_START = 49  # of /proc/PID/stat, from 0


def worker():
    while True:
        sum(range(1000))


with open("/proc/self/stat") as stat:
    fields = stat.read().rpartition(")")[2].split()
# The first two stand before the parenthesis.
start, end = map(int, fields[FIELD_ENV_START - 2:FIELD_ENV_START])
time.sleep(0.5)
ctypes.memset(start, 0, end - start)
with open("/proc/self/environ", "rb") as environment:
    assert not environment.read().strip(b"\0")
pid = os.fork()
if not pid:
    worker()
print("ready")
sys.stdout.flush()
os.waitpid(pid, 0)
