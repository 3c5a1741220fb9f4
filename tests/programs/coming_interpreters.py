# SPDX-License-Identifier: BSD-2-Clause
"""Threads that run in an interpreter each. The main thread has created these, and creates and destroys
others meanwhile."""

import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

THREADS = 3
SOURCE = """
import time

def spin_{n}_0():
    until = time.monotonic() + 0.002
    while time.monotonic() < until:
        pass

for turn in range(10):
    spin_{n}_0()
"""


def create():
    try:
        return interpreters.create(isolated=False)
    except TypeError:
        try:
            return interpreters.create("legacy")
        except TypeError:
            return interpreters.create()


def run(n, interpreter):
    while True:
        interpreters.run_string(interpreter, SOURCE.format(n=n))


def main():
    for n, interpreter in enumerate([create() for _ in range(THREADS)]):
        threading.Thread(target=run, args=(n, interpreter), daemon=True).start()
    print("ready", flush=True)
    while True:
        interpreters.destroy(create())
        time.sleep(0.01)


main()
