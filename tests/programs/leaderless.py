# SPDX-License-Identifier: BSD-2-Clause
"""A thread that works on after the first thread has ended, at once, or with `wait` after a line of input."""

import ctypes
import platform
import sys
import threading
import time

from portable import start_thread

EXIT = {"x86_64": 60, "aarch64": 93}[platform.machine()]  # exit(2), which ends one thread
leaving = threading.Event()


def early_work():
    while not leaving.is_set():
        sum(range(1000))


def late_work():
    while True:
        sum(range(1000))


def work():
    early_work()
    time.sleep(0.2)
    late_work()


start_thread(work)
print("ready")
if "wait" in sys.argv:
    sys.stdin.readline()
leaving.set()
ctypes.CDLL(None).syscall(EXIT, 0)
