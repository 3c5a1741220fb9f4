# SPDX-License-Identifier: BSD-2-Clause
"""numbered_threads.py: three busy threads that print their TIDs.

It needs 3.8 or later, and only modules of CPython itself.
"""

import json
import threading
import time

tids = {}


def spin():
    tids[threading.current_thread().name] = threading.get_native_id()
    while True:
        sum(range(1000))


def main():
    threading.current_thread().name = "main"
    tids["main"] = threading.get_native_id()
    for name in ("first", "second"):
        threading.Thread(target=spin, name=name, daemon=True).start()
    while len(tids) < 3:
        time.sleep(0.01)
    print("ready " + json.dumps(tids), flush=True)
    spin()


main()
