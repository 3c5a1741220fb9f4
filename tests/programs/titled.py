# SPDX-License-Identifier: BSD-2-Clause
"""titled.py TITLE: overwrites its command line with TITLE, and its environment too if TITLE is longer, as
setproctitle and servers do, and waits.
"""

import ctypes
import sys
import time


def take_title(title):
    with open("/proc/self/stat") as stat:
        # Fields after the name. arg_start, arg_end, env_start and env_end are 48 to 51 of the line.
        fields = stat.read().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    title = title.encode("ascii")[:int(fields[48]) - start - 1]
    end = max(end, start + len(title) + 1)
    ctypes.memmove(start, title + b"\0" * (end - start - len(title)), end - start)


if __name__ == "__main__":
    take_title(sys.argv[1])
    print("ready")
    time.sleep(3600)
