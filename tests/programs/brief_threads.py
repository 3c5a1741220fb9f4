# SPDX-License-Identifier: BSD-2-Clause
"""brief_threads.py: one thread after another, each soon in its forerunner's memory.

Ends with a line of {tid: name} of them all.
"""

import json
import os
import sys
import threading

from portable import thread_time


def spin(tids):
    tids[int(os.path.basename(os.readlink("/proc/thread-self")))] = threading.current_thread().name
    until = thread_time() + 0.02
    while thread_time() < until:
        pass


def main():
    tids = {os.getpid(): threading.current_thread().name}
    for number in range(30):
        thread = threading.Thread(target=spin, args=(tids,), name="job number %d" % number)
        thread.start()
        thread.join()
    print(json.dumps(tids))
    sys.stdout.flush()


main()
