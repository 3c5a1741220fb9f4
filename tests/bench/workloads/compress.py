# SPDX-License-Identifier: BSD-2-Clause
"""compress.py SHOWN: three threads that make text in Python and compress it with zlib."""

import zlib

from shown import Shown, ready, start_thread

THREADS = 3


def make_text():
    return ",".join([str(value * 7919 % 10007) for value in range(6000)]).encode()


def compress_text(text):
    return zlib.compress(text, 6)


def work_forever(shown):
    while True:
        text = shown.timed(1, make_text)
        shown.timed(2, lambda: compress_text(text))
        with shown.lock:
            shown.turn()


def main():
    shown = Shown(2)
    for _ in range(THREADS - 1):
        start_thread(work_forever, shown)
    ready()
    work_forever(shown)


main()
