# SPDX-License-Identifier: BSD-2-Clause
"""churn.py: starts and ends threads and processes all the time.

`churn.py [CROWD [TOTALS]]`: forks CROWD children first, which work twice a second, and says their
pids; TOTALS gets how many threads have ended.
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


def crowd(count):
    pids = []
    for _ in range(count):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(writer)
            # It ends with the parent.
            while not select.select([reader], [], [], 0.5)[0]:
                spin()
            os._exit(0)
        os.close(reader)
        pids.append(pid)
    return pids


def main():
    print("ready " + json.dumps(crowd(int(sys.argv[1]) if len(sys.argv) > 1 else 0)))
    sys.stdout.flush()
    totals, ended = Totals(sys.argv[2], 1) if len(sys.argv) > 2 else None, 0
    while True:
        threads = [threading.Thread(target=spin) for _ in range(20)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
        for thread in threads:
            thread.join()
        ended += len(threads)
        if totals:
            totals.store([ended])


main()
