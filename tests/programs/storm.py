# SPDX-License-Identifier: BSD-2-Clause
"""storm.py: threads that start and end all the time, several at once.

tests/e2e/legal.py reads the marks `calls:` and `called:`.
"""

try:
    import _thread
except ImportError:
    import thread as _thread  # 2.7
import threading

from portable import start_thread


def leaf():
    return sum(range(100))


def middle():
    return leaf()  # calls: leaf


def job():  # called: library
    for _ in range(100):
        middle()  # calls: middle


def raw_job():
    for _ in range(100):
        middle()  # calls: middle


def run_threads(threads):
    for thread in threads:  # calls: library
        thread.start()  # calls: library
    _thread.start_new_thread(raw_job, ())
    _thread.start_new_thread(raw_job, ())
    for thread in threads:  # calls: library
        thread.join()  # calls: library


def start_threads():  # called: library
    while True:
        first = threading.Thread(target=job)  # calls: library
        second = threading.Thread(target=job)  # calls: library
        run_threads([first, second])  # calls: library, run_threads


print("ready")
start_thread(start_threads)
start_threads()  # calls: start_threads
