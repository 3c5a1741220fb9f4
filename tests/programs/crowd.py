# SPDX-License-Identifier: BSD-2-Clause
"""crowd.py PROCESSES THREADS STACKS BUSY STARTS: PROCESSES Python processes with THREADS threads each.

All are forked from this one. A thread sleeps most of the time. All threads together use BUSY
CPU seconds per second, in STACKS different stacks. STARTS times per second a process is forked
that works 2 ms and ends. Of ten starts, one runs a new Python instead, and two run a short program that
is not Python. All end with this process, which ends with its standard input.
"""

import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time

WORK_S = 0.0005
CHILD_WORK_S = 0.002
STACK_BYTES = 128 * 1024
EXECS_PART = 10
OTHERS = 3, 6

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def left(way, levels, seconds):
    descend(way, levels, seconds)


def right(way, levels, seconds):
    descend(way, levels, seconds)


def descend(way, levels, seconds):
    if not levels:
        work(seconds)
    elif way & 1:
        left(way >> 1, levels - 1, seconds)
    else:
        right(way >> 1, levels - 1, seconds)


def live(stacks, pause):
    levels = (stacks - 1).bit_length()
    time.sleep(random.uniform(0, pause))
    while True:
        descend(random.randrange(stacks), levels, WORK_S)
        time.sleep(random.uniform(0.5, 1.5) * pause)


def become_one(threads, stacks, pause):
    random.seed()
    for _ in range(threads - 1):
        threading.Thread(target=live, args=(stacks, pause), daemon=True).start()
    live(stacks, pause)


def in_child():
    work(CHILD_WORK_S)


def start(number):
    if number % EXECS_PART == EXECS_PART - 1:
        return subprocess.Popen([sys.executable, "-I", "-S", "-c", "sum(range(100000))"])
    if number % EXECS_PART in OTHERS:
        return subprocess.Popen(["sleep", "0.05"])
    pid = os.fork()
    if not pid:
        in_child()
        os._exit(0)
    return None


def start_forever(rate):
    """Starts RATE processes per second, and reaps them."""
    begin, number = time.monotonic(), 0
    while True:
        time.sleep(max(0, begin + number / rate - time.monotonic()))
        start(number)
        number += 1
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def fork_into(function, *arguments):
    pid = os.fork()
    if not pid:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        try:
            function(*arguments)
        finally:
            os._exit(1)
    return pid


def main():
    processes, threads, stacks = map(int, sys.argv[1:4])
    busy, starts = map(float, sys.argv[4:6])
    threading.stack_size(STACK_BYTES)
    pause = processes * threads * WORK_S / busy
    pids = [fork_into(become_one, threads, stacks, pause) for _ in range(processes)]
    if starts:
        pids.append(fork_into(start_forever, starts))
    # Wait until the forked processes have started all their threads.
    for pid in pids[:processes]:
        while len(os.listdir("/proc/%d/task" % pid)) < threads:
            time.sleep(0.01)
    print("ready")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
