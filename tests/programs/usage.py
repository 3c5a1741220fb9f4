# SPDX-License-Identifier: BSD-2-Clause
"""usage.py FILE COMMAND...: runs COMMAND, and writes its CPU time and peak memory to FILE, as JSON."""

import ctypes
import json
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

child = os.fork()
if not child:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(child, 0)
with open(sys.argv[1], "w", encoding="ascii") as file:
    json.dump({"cpu_s": used.ru_utime + used.ru_stime, "rss_mb": used.ru_maxrss / 1024}, file)
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
