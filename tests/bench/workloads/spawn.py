# SPDX-License-Identifier: BSD-2-Clause
"""spawn.py SHOWN COUNT SECONDS: COUNT processes, two at a time, each with SECONDS of work to do.

Each works in a function with its number.  They start after a line of input.  The program prints
their PIDs, ends after the last of them, and shows how long that took.
"""

import os
import subprocess
import sys
import time

from shown import Shown, ready

AT_ONCE = 2

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")


def main():
    count, seconds = int(sys.argv[2]), sys.argv[3]
    options = ["-X", "perf"] if "perf" in sys._xoptions else []
    shown = Shown()
    ready()
    sys.stdin.readline()
    start = time.monotonic()
    running = []
    for number in range(count):
        if len(running) == AT_ONCE:
            running.pop(0).wait()
        running.append(subprocess.Popen([sys.executable, *options, "-I", "-S", CHILD,
                                         str(number), seconds]))
        print(running[-1].pid)
    for child in running:
        child.wait()
    shown.add(0, time.monotonic() - start)


main()
