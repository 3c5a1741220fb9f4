# SPDX-License-Identifier: BSD-2-Clause
"""comes_back.py UID SECONDS SECONDS SECONDS: waits for a line of input, then runs as user UID, as root, and as
UID again, for SECONDS of CPU time each.

Its comm is wanted-1, other-2 and wanted-3 meanwhile.
"""

import os
import sys
import time


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(100))


def as_wanted(seconds):
    spin(seconds)


def as_other(seconds):
    spin(seconds)


def again_as_wanted(seconds):
    spin(seconds)


def become(uid, name):
    os.seteuid(0)
    with open("/proc/self/comm", "w") as comm:
        comm.write(name)
    os.seteuid(uid)


def main():
    uid, seconds = int(sys.argv[1]), [float(word) for word in sys.argv[2:]]
    become(uid, "wanted-1")
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    as_wanted(seconds[0])
    become(0, "other-2")
    as_other(seconds[1])
    become(uid, "wanted-3")
    again_as_wanted(seconds[2])


main()
