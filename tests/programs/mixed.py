# SPDX-License-Identifier: BSD-2-Clause
"""mixed.py THREADS: Python and C call each other in many ways, in THREADS threads and the first one, until
the program is killed."""

import ctypes
import functools
import hashlib
import json
import re
import signal
import sys
import threading
import zlib

HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)
SORTER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
LIBRARY = ctypes.CDLL(None)
TEXT = "the quick brown fox jumps over the lazy dog " * 10
DEPTH = 60


def compare(one, other):
    return one[0] - other[0]


def sort_in_c():
    numbers = (ctypes.c_int * 64)(*[i * 7919 % 1000 for i in range(64)])
    LIBRARY.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), SORTER(compare))


def key(number):
    return -number if number % 3 else sum(range(number % 40))


def sort_with_key():
    return sorted(range(300), key=key)


def descend(levels):
    """Each level is called by C."""
    return list(map(descend, [levels - 1])) if levels else []


def go_deep():
    for _ in range(20):
        descend(DEPTH)


def replace(match):
    return str(len(match.group(0)) * 2)


def replace_in_text():
    return re.sub(r"[a-z]+", replace, TEXT)


def unknown_to_json(value):
    return sorted(value, key=key)


def write_json():
    return json.loads(json.dumps({str(i): {i, i + 1} for i in range(30)}, default=unknown_to_json, indent=1))


def combine(one, other):
    return one ^ other


def reduce():
    return functools.reduce(combine, map(hash, map(str, range(300))))


class Number:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value < other.value

    def __gt__(self, other):
        return self.value > other.value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return hash(self.value)


def use_methods():
    return max(Number(i * 7 % 31) for i in range(60)), len({Number(i % 10) for i in range(60)})


def digest():
    return hashlib.sha512(b"q" * 9000).digest(), zlib.compress(b"abc" * 3000)


def calculate():
    return str(3 ** 2000), 7 ** 900 // 3 ** 100


JOBS = (sort_in_c, sort_with_key, go_deep, replace_in_text, write_json, reduce, use_methods, digest, calculate)


def work_for(rounds):
    for _ in range(rounds):
        for job in JOBS:
            job()


@HANDLER
def handle(number):
    work_for(5)


def work():
    """Half of the work is in a signal handler: C that calls Python, as the interrupted code does."""
    while True:
        work_for(5)
        LIBRARY["raise"](signal.SIGUSR1)


def main():
    LIBRARY.signal(signal.SIGUSR1, handle)
    # Load now all libraries that are loaded on first use.
    work_for(1)
    threads = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
    threads.append(threading.Thread(target=threading.Event().wait))
    for thread in threads:
        thread.daemon = True
        thread.start()
    print("ready")
    work()


if __name__ == "__main__":
    main()
