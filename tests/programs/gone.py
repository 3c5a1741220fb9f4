# SPDX-License-Identifier: BSD-2-Clause
"""gone.py: works in ten functions, 5 ms in each, and is gone at once."""

import os
import signal
import time

TEXT = """
def work_%d(clock, end):
    while clock() < end:
        pass
"""


def main():
    clock = getattr(time, "perf_counter", time.time)
    names = {}
    for number in range(10):
        exec(compile(TEXT % number, "text.py", "exec"), names)
        names["work_%d" % number](clock, clock() + 0.005)
    os.kill(os.getpid(), signal.SIGKILL)


main()
