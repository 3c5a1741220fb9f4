# SPDX-License-Identifier: BSD-2-Clause
"""qualified_later.py: imports a module once it reads a line, and then runs a method of it."""

import sys
import threading

from portable import start_thread, thread_time

go = threading.Event()


def wait():
    sys.stdin.readline()
    go.set()


def spin():
    until = thread_time() + 0.002
    while thread_time() < until:
        pass


def early():
    spin()


print("ready")
start_thread(wait)
while not go.is_set():
    early()

import qualified_part  # noqa: E402: the late import is the test

while True:
    qualified_part.Part().method(spin)
