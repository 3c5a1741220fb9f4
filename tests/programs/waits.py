# SPDX-License-Identifier: BSD-2-Clause
"""Threads that wait, each in its own way.  After a line of input, or its end, one more thread sleeps for long."""

import os
import select
import sys
import threading
import time

STEP = 0.01


def sleep_here():
    while True:
        time.sleep(STEP)


def read_here(end):
    while True:
        os.read(end, 1)


def poll_here(end):
    while True:
        select.select([end], [], [], STEP)


def lock_here(lock):
    while True:
        lock.acquire()


def sleep_long():
    time.sleep(1000)


def feed(end, lock):
    while True:
        os.write(end, b"x")
        try:
            lock.release()
        except Exception:  # it is free: RuntimeError, or thread.error
            pass
        time.sleep(STEP)


def begin(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.daemon = True
    thread.start()


def main():
    lock = threading.Lock()
    fed, silent = os.pipe(), os.pipe()
    begin(sleep_here)
    begin(read_here, fed[0])
    begin(poll_here, silent[0])
    begin(lock_here, lock)
    begin(feed, fed[1], lock)
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    begin(sleep_long)
    while True:
        time.sleep(1)


main()
