# SPDX-License-Identifier: BSD-2-Clause
"""churn.py: starts and ends threads and processes all the time.

`churn.py [CROWD [TOTALS]]`: first forks CROWD children, which work twice per second, and prints their
PIDs. The file TOTALS gets the numbers of ended threads and ended forked children.
"""

import json
import os
import select
import sys
import threading

from portable import thread_time
from totals import Totals


def spin():
    until = thread_time() + 0.001
    while thread_time() < until:
        pass


def in_child():
    spin()


def fork():
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(0)
    return pid


def crowd(count):
    pids = []
    for _ in range(count):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(writer)
            # The pipe closes when the parent ends.
            while not select.select([reader], [], [], 0.5)[0]:
                spin()
            os._exit(0)
        os.close(reader)
        pids.append(pid)
    return pids


def main():
    print("ready " + json.dumps(crowd(int(sys.argv[1]) if len(sys.argv) > 1 else 0)))
    sys.stdout.flush()
    totals, ended = Totals(sys.argv[2], 2) if len(sys.argv) > 2 else None, [0, 0]
    while True:
        # Fork before other threads run: a child would wait for locks that they hold.
        children = [fork() for _ in range(5)]
        threads = [threading.Thread(target=spin) for _ in range(20)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
        for thread in threads:
            thread.join()
        for child in children:
            os.waitpid(child, 0)
        ended = [ended[0] + len(threads), ended[1] + len(children)]
        if totals:
            totals.store(ended)


main()
