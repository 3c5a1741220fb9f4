# SPDX-License-Identifier: BSD-2-Clause
"""reborn.py: forks children one after the other until PIDs have been reused 150 times. A child works for 2 ms in
`forked`. One in three with a reused PID executes this program as `reborn.py child NUMBER`, and works in
`child_NUMBER`.

It needs a PID namespace with few PIDs.
"""

import os
import sys
import time

WORK_S, CHILD_WORK_S = 0.002, 0.03
AGAIN = 150
RUNS_PART = 3


def work(name, seconds):
    """Works in a function called NAME."""
    code = "def %s(end, clock):\n while clock() < end: sum(range(100))\n" % name
    names = {}
    exec(compile(code, "/reborn/%s.py" % name, "exec"), names)
    names[name](time.process_time() + seconds, time.process_time)


def main():
    if sys.argv[1:]:
        work("child_" + sys.argv[2], CHILD_WORK_S)
        return
    seen, again = set(), 0
    while again < AGAIN:
        pid = os.fork()
        if not pid:
            if again % RUNS_PART == 1:
                os.execv(sys.executable, [sys.executable, "-S", __file__, "child", str(again)])
            work("forked", WORK_S)
            os._exit(0)
        os.waitpid(pid, 0)
        again += pid in seen
        seen.add(pid)


main()
