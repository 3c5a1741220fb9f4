# SPDX-License-Identifier: BSD-2-Clause
"""gil.py [FUNCTION...]: one thread for each named function. In C code, keep_here keeps the GIL and release_here
releases it."""

import sys
import threading
import time

LONG = 3 ** 200000
DATA = b"x" * 4000000


def keep_here():
    while True:
        LONG * LONG


def release_here():
    import hashlib
    while True:
        hashlib.sha256(DATA).digest()


def sleep_here():
    while True:
        time.sleep(0.001)


def spin_here():
    while True:
        pass


for name in sys.argv[1:]:
    thread = threading.Thread(target=globals()[name])
    thread.daemon = True
    thread.start()
print("ready")
sys.stdout.flush()
time.sleep(1000)
