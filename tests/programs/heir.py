# SPDX-License-Identifier: BSD-2-Clause
"""heir.py PROFILER...: starts the profiler, and stops it while a child works for WORK_S in `forked` and
ends, and a second child gets the same PID and executes `sleep`.

It needs a PID namespace of its own.
"""

import os
import signal
import subprocess
import sys
import time

WORK_S, LOOK_S = 0.2, 0.5
NUMBER = 4000


def forked():
    end = time.process_time() + WORK_S
    while time.process_time() < end:
        sum(range(100))


def start(program):
    """Forks a child with PID NUMBER + 1 that runs PROGRAM(). Returns the PID."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(NUMBER))
    pid = os.fork()
    if not pid:
        program()
        os._exit(0)
    return pid


def is_confined(pid):
    """Whether the profiler PID has begun to sample."""
    with open("/proc/%d/status" % pid) as status:
        return "NoNewPrivs:\t1" in status.read()


profiler = subprocess.Popen(sys.argv[1:])
while not is_confined(profiler.pid):
    time.sleep(0.01)
time.sleep(LOOK_S)
profiler.send_signal(signal.SIGSTOP)
pid = start(forked)
os.waitpid(pid, 0)
heir = start(lambda: os.execvp("sleep", ["sleep", "1000"]))
assert pid == heir
while os.path.basename(os.readlink("/proc/%d/exe" % heir)).startswith("python"):
    time.sleep(0.01)
profiler.send_signal(signal.SIGCONT)
time.sleep(LOOK_S)
profiler.send_signal(signal.SIGINT)
sys.exit(profiler.wait())
