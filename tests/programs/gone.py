# SPDX-License-Identifier: BSD-2-Clause
"""gone.py: works until the profiler surely knows it, then for 5 ms of CPU time in each of ten functions,
and kills itself at once."""

import os
import signal
import time

# A module that does not exist, in a package that does.
FILE = os.path.join(os.path.dirname(os.__file__), "json", u"\u51fd.py" if str is not bytes else "x.py")

TEXT = """
def work_%d(clock, end):
    while clock() < end:
        pass
"""


def work(clock, end):
    while clock() < end:
        pass


def main():
    clock = getattr(time, "process_time", None) or time.clock
    names = {}
    work(clock, clock() + 0.3)
    for number in range(10):
        exec(compile(TEXT % number, FILE, "exec"), names)
        names["work_%d" % number](clock, clock() + 0.005)
    os.kill(os.getpid(), signal.SIGKILL)


main()
