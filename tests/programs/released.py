# SPDX-License-Identifier: BSD-2-Clause
"""released.py: threads in C code that releases the GIL for long periods.

Prints the names of their functions.  Up to 3.6 only one is certain to release it: hashlib may lack
OpenSSL.
"""

import hashlib
import json
import sys
import zlib

from portable import start_thread

BUFFER = bytes(bytearray(range(256))) * 4096 * 4


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


functions = [compress_buffer, hash_buffer, sum_buffer, hash_password]
if sys.version_info < (3, 7):
    del functions[1:]
for function in functions:
    start_thread(caller, function)
print("ready " + json.dumps([function.__name__ for function in functions]))
caller(functions[-1])
