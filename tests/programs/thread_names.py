# SPDX-License-Identifier: BSD-2-Clause
"""thread_names.py: threads named in every way; says {tid: name}, null where Python has none.

For each line that it reads it gives all threads that have a name another one, and says them again.
"""

import _thread
import concurrent.futures
import json
import os
import sys
import threading
import time

NAMES = [
    "plain",
    "a name of many more than fifteen characters",
    "Caf\xe9 \xff",
    "\u4e2d\u6587",
    "\U0001f600 four bytes",
    "\x1b[31mcontrol\n;\x7f 7",
    "x" * 4096,
]

threads = {}


def note_thread(name):
    threads[int(os.path.basename(os.readlink("/proc/thread-self")))] = name


def spin(name=None):
    note_thread(name)
    while True:
        pass


def spin_as_dummy():
    spin(threading.current_thread().name)


class Worker(threading.Thread):
    """One whose attributes come in another order, and are many."""

    def __init__(self, name):
        self.first = 1
        super().__init__(target=spin, args=(name,), name=name, daemon=True)
        for number in range(40):
            setattr(self, "attribute_%d" % number, number)


def say_threads():
    print("ready " + json.dumps(threads), flush=True)


def rename_threads():
    note_thread("reader")
    for line in sys.stdin:
        addition = line.rstrip("\n")
        for thread in threading.enumerate():
            thread.name += addition
        for tid, name in threads.items():
            threads[tid] = name and name + addition
        say_threads()


def main():
    # All of them are loops without an end, which are to take turns soon.
    sys.setswitchinterval(0.001)
    for name in NAMES:
        threading.Thread(target=spin, args=(name,), name=name, daemon=True).start()
    Worker("a subclass").start()
    thread = threading.Thread(target=spin, args=("as a dict",), name="as a dict", daemon=True)
    vars(thread)["attribute"] = 1
    thread.start()
    pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pool")
    pool.submit(spin, "pool_0")
    _thread.start_new_thread(spin, ())
    _thread.start_new_thread(spin_as_dummy, ())
    threading.Thread(target=rename_threads, name="reader", daemon=True).start()
    while len(threads) < len(NAMES) + 6:
        time.sleep(0.01)
    note_thread(threading.current_thread().name)
    say_threads()
    while True:
        pass


main()
