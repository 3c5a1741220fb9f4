# SPDX-License-Identifier: BSD-2-Clause
"""threads_again.py: 400 threads, one after the other, that work 10 ms each in a function with the thread's
name. In a PID namespace with few numbers, TIDs are reused.
"""

import threading

from portable import thread_time

THREADS, WORK_S = 400, 0.01
NAMES = 40
SOURCE = "def spin_%%d(now):\n    end = now() + %f\n    while now() < end:\n        sum(range(100))\n" % WORK_S


def main():
    functions = {}
    for number in range(NAMES):
        exec(SOURCE % number, functions)
    for count in range(THREADS):
        name = "spin_%d" % (count % NAMES)
        thread = threading.Thread(target=functions[name], args=(thread_time,), name=name)
        thread.start()
        thread.join()


main()
