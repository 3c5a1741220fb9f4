# SPDX-License-Identifier: BSD-2-Clause
"""What a workload shows the bench while it runs: its turns, and its functions' CPU time.

The first number is the turns; the next are seconds by the workload's own clock.
"""

import ctypes
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "programs"))
from portable import start_thread, thread_time  # noqa: E402
from totals import map_file  # noqa: E402


class Shown:
    """The numbers of the file whose name is the workload's first argument."""

    def __init__(self, functions=0):
        # Unlike struct's, its writes leave no moment in which a number is 0.
        count = 1 + functions
        self.values = (ctypes.c_double * count).from_buffer(map_file(sys.argv[1], 8 * count))
        self.lock = threading.Lock()

    def add(self, index, value):
        self.values[index] += value

    def turn(self):
        self.add(0, 1)

    def timed(self, index, function):
        """FUNCTION's result; its CPU time goes to INDEX, from 1 on."""
        start = thread_time()
        result = function()
        with self.lock:
            self.add(index, thread_time() - start)
        return result


def ready():
    print("ready")
    sys.stdout.flush()


def start_idle(count):
    """COUNT threads that wait for ever."""
    never = threading.Event()
    for _ in range(count):
        start_thread(never.wait)
