# SPDX-License-Identifier: BSD-2-Clause
"""For each line of input: computes in queue_here, and prints how many nanoseconds it was on the run queue meanwhile, by
the kernel's count."""

import sys
import time


def on_run_queue():
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1])


def queue_here():
    before, end = on_run_queue(), time.process_time() + 0.5
    while time.process_time() < end:
        pass
    return on_run_queue() - before


print("ready")
sys.stdout.flush()
for _ in iter(sys.stdin.readline, ""):
    print(queue_here())
    sys.stdout.flush()
