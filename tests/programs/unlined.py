# SPDX-License-Identifier: BSD-2-Clause
"""unlined.py: runs a function whose instructions have no line, like those that set up a frame."""

import sys


def spin():
    for _ in range(5000):
        pass


# 3.10: 254 bytes without a line; later: 8 code units.
table = b"\xfe\x80" if sys.version_info < (3, 11) else b"\xff" * 100
spin.__code__ = spin.__code__.replace(co_linetable=table)

print("ready", spin.__code__.co_firstlineno)
sys.stdout.flush()
while True:
    spin()
