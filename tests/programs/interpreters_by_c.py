# SPDX-License-Identifier: BSD-2-Clause
"""interpreters_by_c.py LIBRARY: like interpreters.py, for versions without a module for interpreters.

LIBRARY is built from sub_interpreter.c. Thread N repeatedly runs turn_N_0, and then turn_N_1 in a new
interpreter. Each has half of the thread's CPU time.
"""

import ctypes
import sys
import threading

from portable import start_thread, thread_time

THREADS = 3

library = ctypes.PyDLL(sys.argv[1])

TURN = """
def spin_{n}_{level}(until, clock):
    while clock() < until:
        pass

def turn_{n}_{level}(clock):
    spin_{n}_{level}(clock() + 0.05, clock)
"""

ALONE = TURN + """
import sys
sys.path.insert(0, {folder!r})
from portable import thread_time
turn_{n}_{level}(thread_time)
"""


def work(n):
    scope = {}
    exec(TURN.format(n=n, level=0), scope)
    inner = ALONE.format(n=n, level=1, folder=sys.path[0]).encode("utf-8")
    while True:
        scope["turn_%d_0" % n](thread_time)
        library.run_in_another(inner)


def main():
    for n in range(THREADS):
        start_thread(work, n)
    print("ready")
    sys.stdout.flush()
    threading.Event().wait(1000000)


main()
