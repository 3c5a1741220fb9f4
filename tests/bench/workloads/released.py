# SPDX-License-Identifier: BSD-2-Clause
"""released.py SHOWN: one thread that alternates between Python and C code without the GIL."""

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
