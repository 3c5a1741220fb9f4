# SPDX-License-Identifier: BSD-2-Clause
"""The numbers that a workload shows the bench while it runs: its turns, and its functions' CPU time.

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
    """The numbers in the file that the workload's first argument names."""

    def __init__(self, functions=0):
        # Unlike struct, ctypes never writes a 0 in between.
        count = 1 + functions
        self.values = (ctypes.c_double * count).from_buffer(map_file(sys.argv[1], 8 * count))
        self.lock = threading.Lock()

    def add(self, index, value):
        self.values[index] += value

    def turn(self):
        self.add(0, 1)

    def timed(self, index, function):
        """Calls FUNCTION and adds its CPU time to INDEX, from 1 on; returns its result."""
        start = thread_time()
        result = function()
        with self.lock:
            self.add(index, thread_time() - start)
        return result


def ready():
    print("ready")
    sys.stdout.flush()


def start_idle(count):
    """Starts COUNT threads that wait forever."""
    never = threading.Event()
    for _ in range(count):
        start_thread(never.wait)
