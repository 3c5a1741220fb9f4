# SPDX-License-Identifier: BSD-2-Clause
"""released.py: threads in C code that has released the GIL, for long at a time."""

import hashlib
import threading
import zlib

BUFFER = bytes(range(256)) * 4096 * 4


def hash_password():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 100000)


def hash_buffer():
    while True:
        hashlib.sha256(BUFFER)


def sum_buffer():
    while True:
        zlib.crc32(BUFFER)


def compress_buffer():
    while True:
        zlib.compress(BUFFER)


def caller(function):
    function()


for function in hash_buffer, sum_buffer, compress_buffer:
    threading.Thread(target=caller, args=(function,), daemon=True).start()
print("ready", flush=True)
caller(hash_password)
