# SPDX-License-Identifier: BSD-2-Clause
"""greenlet_starts.py greenlet|gevent|thread: starts greenlets, or threads instead, for a short call
each."""

import sys
import threading

import gevent
import greenlet


def piece():
    return sum(range(20))


def start_greenlet():
    greenlet.greenlet(piece).switch()


def start_of_gevents():
    gevent.joinall([gevent.spawn(piece) for _ in range(20)])


def start_thread():
    thread = threading.Thread(target=piece)
    thread.start()
    thread.join()


def main():
    start = {"greenlet": start_greenlet, "gevent": start_of_gevents, "thread": start_thread}[sys.argv[1]]
    print("ready")
    sys.stdout.flush()
    while True:
        start()


main()
