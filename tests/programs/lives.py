# SPDX-License-Identifier: BSD-2-Clause
"""Threads that live until a line of input. The functions' names say what they do."""

import socket
import sys
import threading
import time

STEP = 0.01


def spin_here():
    while True:
        sum(range(1000))


def spin_again_here():
    while True:
        sum(range(1000))


def keep_gil_here():
    numbers = list(range(100000, 0, -1))
    while True:
        sorted(numbers)
        time.sleep(STEP)


def sleep_here():
    while True:
        time.sleep(STEP)


def lock_here(lock):
    while True:
        lock.acquire()


def receive_here(connection):
    while True:
        connection.recv(1)


def sleep_throughout_here():
    time.sleep(100000)


def begin(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.daemon = True
    thread.start()


def main():
    lock = threading.Lock()
    sender, receiver = socket.socketpair()
    for function in spin_here, spin_again_here, keep_gil_here, sleep_here, sleep_throughout_here:
        begin(function)
    begin(lock_here, lock)
    begin(receive_here, receiver)

    def feed_here():
        while True:
            sender.send(b"x")
            try:
                lock.release()
            except Exception:  # it is free: RuntimeError, or thread.error
                pass
            time.sleep(STEP)
    begin(feed_here)
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()


main()
