# SPDX-License-Identifier: BSD-2-Clause
"""changing.py SECONDS INTERPRETER [ARGUMENT...]: uses SECONDS of CPU time, then becomes another program."""

import os
import sys
import time


def before_exec(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


print("ready", flush=True)
before_exec(float(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])
