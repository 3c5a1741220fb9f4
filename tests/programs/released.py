# SPDX-License-Identifier: BSD-2-Clause
"""released.py: two threads in C code that has released the GIL."""

import hashlib
import threading


def hash_password():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 100000)


def caller():
    hash_password()


threading.Thread(target=caller, daemon=True).start()
print("ready", flush=True)
caller()
