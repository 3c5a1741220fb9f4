# SPDX-License-Identifier: BSD-2-Clause
"""forked.py: starts threads and forks a child without them. The child's threads reuse their stacks and IDs.

Prints the child's PID, and the number of its threads with an ID reused from before the fork.
"""

import json
import os
import sys
import threading
import time

from portable import start_thread

THREADS = 4


def start(function, idents):
    for _ in range(THREADS):
        start_thread(function, idents)
    while len(idents) < THREADS:
        time.sleep(0.01)


def left_behind(idents):
    idents.append(threading.current_thread().ident)
    while True:
        time.sleep(1000)


def alive(idents):
    idents.append(threading.current_thread().ident)
    parent = os.getppid()
    while os.getppid() == parent:
        pass


def main():
    before, after = [], []
    start(left_behind, before)
    if os.fork():
        os.wait()
        return
    start(alive, after)
    print("ready " + json.dumps({"pid": os.getpid(), "reused": len(set(before) & set(after))}))
    sys.stdout.flush()
    alive([])


main()
