# SPDX-License-Identifier: BSD-2-Clause
"""changing.py SECONDS INTERPRETER [ARGUMENT...]: executes another program.

It first waits for a line of input, and then uses SECONDS of CPU time.
"""

import os
import sys

from portable import thread_time


def before_exec(seconds):
    end = thread_time() + seconds
    while thread_time() < end:
        pass


print("ready")
sys.stdin.readline()
before_exec(float(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])
