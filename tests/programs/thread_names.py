# SPDX-License-Identifier: BSD-2-Clause
"""thread_names.py: threads named in every way. Prints {tid: name}, with null for threads without a Python name.

Each line of input is appended to all names, which are then printed again.
"""

from __future__ import unicode_literals

import json
import os
import sys
import threading
import time

from portable import start_thread

if sys.version_info >= (3,):
    import _thread
    import concurrent.futures
else:
    import thread as _thread

NAMES = [
    "plain",
    "a name of many more than fifteen characters",
    "Caf\xe9 \xff",
    "\u4e2d\u6587",
    "\U0001f600 four bytes",
    "\x1b[31mcontrol\n;\x7f 7",
    "x" * 4096,
    "\xff" + "y" * 70000,
]
TOO_LONG = "z" * (1024 * 1024 + 1)

threads = {}


def native(name):
    """NAME as this Python's str: in 2.7 bytes."""
    return name if sys.version_info >= (3,) else name.encode("utf-8")


def note_thread(name):
    threads[int(os.path.basename(os.readlink("/proc/thread-self")))] = name


def spin(name=None):
    note_thread(name)
    while True:
        pass


def spin_as_dummy():
    spin(threading.current_thread().name)


class Worker(threading.Thread):
    """A thread with many attributes, in another order."""

    def __init__(self, name):
        for number in range(100):
            setattr(self, "attribute_%d" % number, number)
        super(Worker, self).__init__(target=spin, args=(name,), name=native(name))
        self.daemon = True


def say_threads():
    print("ready " + json.dumps(threads))


def rename_threads():
    note_thread("reader")
    for line in iter(sys.stdin.readline, native("")):
        addition = line.rstrip("\n")
        for thread in threading.enumerate():
            thread.name += native(addition)
        for tid, name in threads.items():
            threads[tid] = name and name + addition
        say_threads()


def main():
    # All threads loop for ever, and should take turns quickly.
    if sys.version_info >= (3,):
        sys.setswitchinterval(0.001)
    for name in NAMES:
        start_thread(spin, name, name=native(name))
    start_thread(spin, name=native(TOO_LONG))
    Worker("a subclass").start()
    thread = threading.Thread(target=spin, args=("as a dict",), name=native("as a dict"))
    vars(thread)["attribute"] = 1
    thread.daemon = True
    thread.start()
    expected = len(NAMES) + 6
    if sys.version_info >= (3,):
        expected += 1
        pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pool")
        pool.submit(spin, "pool_0")
    _thread.start_new_thread(spin, ())
    _thread.start_new_thread(spin_as_dummy, ())
    start_thread(rename_threads, name=native("reader"))
    while len(threads) < expected:
        time.sleep(0.01)
    note_thread(threading.current_thread().name)
    say_threads()
    while True:
        pass


main()
