# SPDX-License-Identifier: BSD-2-Clause
# -*- coding: utf-8 -*-
"""named_threads.py: three threads with different names and functions."""

import json
import time

from portable import start_thread, thread_time
from totals import set_thread_name


def spin(seconds):
    until = thread_time() + seconds
    while thread_time() < until:
        pass


def first_job(name, tids):
    tids[name] = set_thread_name(name)
    while True:
        spin(0.001)


def second_job(name, tids):
    tids[name] = set_thread_name(name)
    while True:
        spin(0.001)


def main_job():
    while True:
        spin(0.001)


def main():
    tids = {}
    for name, job in (("first worker", first_job), ("zweiter; ü 2", second_job)):
        start_thread(job, name, tids)
    while len(tids) < 2:
        time.sleep(0.01)
    tids["the main one"] = set_thread_name("the main one")
    print("ready " + json.dumps(tids))
    main_job()


main()
