# SPDX-License-Identifier: BSD-2-Clause
"""released.py SHOWN: one thread in Python, and in C code that has released the GIL, by turns."""

import hashlib

from shown import Shown, ready

ROUNDS = 10000  # some milliseconds of C code in one call


def hash_password():
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", ROUNDS)


def compute():
    total = 0
    for value in range(20000):
        total += value
    return total


def main():
    shown = Shown(2)
    ready()
    while True:
        shown.timed(1, compute)
        shown.timed(2, hash_password)
        shown.turn()


main()
