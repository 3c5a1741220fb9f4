# SPDX-License-Identifier: BSD-2-Clause
"""Threads that wait for ever, each in its own way. After a line of input, one wakes and never waits again."""

import select
import socket
import sys
import threading
import time

try:
    import queue
except ImportError:
    import Queue as queue


def sleep_here():
    time.sleep(100000)


def queue_here(things):
    things.get()


def read_here(end):
    end.recv(1)


def poll_here(end):
    select.select([end], [], [])


def lock_here(lock):
    lock.acquire()


def wake_here(end):
    end.recv(1)
    while True:
        pass


def begin(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.daemon = True
    thread.start()


def main():
    lock = threading.Lock()
    lock.acquire()
    silent, ends = socket.socketpair(), socket.socketpair()
    begin(sleep_here)
    begin(queue_here, queue.Queue())
    begin(read_here, silent[0])
    begin(poll_here, silent[1])
    begin(lock_here, lock)
    begin(wake_here, ends[0])
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    ends[1].send(b"x")
    lock.acquire()


main()
