# SPDX-License-Identifier: BSD-2-Clause
"""services.py COUNT AT_ONCE: runs COUNT services in turn, AT_ONCE at a time and each for a second, until a
line of input. Then it prints the CPU time of all of them, as JSON.

services.py: a service."""

import json
import os
import resource
import subprocess
import sys
import threading
import time

from portable import thread_time

LIFE_S = 1.0
WORK_S = 0.03


def work():
    until = thread_time() + WORK_S
    while thread_time() < until:
        pass


def serve():
    work()
    time.sleep(LIFE_S)
    work()


def main():
    count, at_once = map(int, sys.argv[1:])
    over, running, started = [], [], 0
    waiting = threading.Thread(target=lambda: over.append(sys.stdin.readline()))
    waiting.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not over:
        running = [one for one in running if one.poll() is None]
        if len(running) < at_once:
            name = "service-%d-%d" % (os.getpid(), started % count)
            running.append(subprocess.Popen([sys.executable, __file__],
                                            env=dict(os.environ, OTEL_SERVICE_NAME=name)))
            started += 1
        time.sleep(LIFE_S / at_once)
    for one in running:
        one.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"started": started, "cpu_s": used.ru_utime + used.ru_stime}))
    sys.stdout.flush()


main() if len(sys.argv) > 1 else serve()
