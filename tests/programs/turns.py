# SPDX-License-Identifier: BSD-2-Clause
"""turns.py SECONDS: two sources take turns of SECONDS of CPU time, each compiled, run and dropped repeatedly.

Each reuses all addresses of the other. They have the same name and first line. The first calls `second`
from line 2, the other calls `sixth` from line 6.
"""

import os
import sys

from portable import thread_time

RUN_SECONDS = 0.01


def second(end):
    while thread_time() < end:
        pass


def sixth(end):
    while thread_time() < end:
        pass


SOURCES = [("first = 1\ncall(end)\n", second), ("first = 1\n\n\n\n\ncall(end)\n", sixth)]


def run(source, function):
    code = compile(source, "<string>", "exec")
    exec(code, {"call": function, "end": thread_time() + RUN_SECONDS})


def main():
    seconds = float(sys.argv[1])
    print("ready")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        for source, function in SOURCES:
            end = thread_time() + seconds
            while thread_time() < end:
                run(source, function)


main()
