# SPDX-License-Identifier: BSD-2-Clause
"""qualified_later.py: imports a module when a line comes in, and runs a method of it from then on."""

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

import qualified_part  # noqa: E402: this is what is tested

while True:
    qualified_part.Part().method(spin)
