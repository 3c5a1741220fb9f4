# SPDX-License-Identifier: BSD-2-Clause
"""gives_up.py UID NAME SECONDS: a server's first process works as root, and forks a worker that drops privileges.

A line of input forks the worker. After 0.3 s of CPU time the worker sets its comm to NAME, becomes user UID,
and works for SECONDS more of CPU time.
"""

import os
import sys
import time


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(100))


def as_root():
    spin(0.02)


def as_user(seconds):
    spin(seconds)


def work(uid, name, seconds):
    spin(0.3)
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)
    os.setgid(uid)
    os.setuid(uid)
    as_user(seconds)
    os._exit(0)


def main():
    uid, name, seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    pid = os.fork()
    if not pid:
        work(uid, name, seconds)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        as_root()
        time.sleep(0.02)


main()
