# SPDX-License-Identifier: BSD-2-Clause
"""reborn.py SECONDS: forks children all that time, one after the other, each of which works 2 ms in a
function named for what it is; of each 7, one runs this program again, as `reborn.py child NUMBER`.

Where numbers of processes are few, they come again and again.
"""

import os
import sys
import time

WORK_S, CHILD_WORK_S = 0.002, 0.03
RUNS_PART = 7


def work(name, seconds):
    """In a function of that name."""
    code = "def %s(end, clock):\n while clock() < end: sum(range(100))\n" % name
    names = {}
    exec(compile(code, "/reborn/%s.py" % name, "exec"), names)
    names[name](time.process_time() + seconds, time.process_time)


def main():
    if sys.argv[1] == "child":
        work("child_" + sys.argv[2], CHILD_WORK_S)
        return
    end, number = time.monotonic() + float(sys.argv[1]), 0
    while time.monotonic() < end:
        pid = os.fork()
        if not pid:
            if number % RUNS_PART == 0:
                os.execv(sys.executable, [sys.executable, "-S", __file__, "child", str(number)])
            work("forked", WORK_S)
            os._exit(0)
        os.waitpid(pid, 0)
        number += 1


main()
