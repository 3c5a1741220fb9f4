# SPDX-License-Identifier: BSD-2-Clause
"""brief_threads.py COUNT SECONDS: runs COUNT threads one by one. Each may reuse the last one's memory.

Prints {tid: name} of all threads at its end.
"""

import json
import os
import sys
import threading

from portable import thread_time


def spin(tids, seconds):
    tids[int(os.path.basename(os.readlink("/proc/thread-self")))] = threading.current_thread().name
    until = thread_time() + seconds
    while thread_time() < until:
        pass


def main():
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    tids = {os.getpid(): threading.current_thread().name}
    for number in range(count):
        name = "job number %d" % number
        thread = threading.Thread(target=spin, args=(tids, seconds), name=name)
        thread.start()
        thread.join()
    print(json.dumps(tids))
    sys.stdout.flush()


main()
