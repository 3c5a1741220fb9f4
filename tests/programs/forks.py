# SPDX-License-Identifier: BSD-2-Clause
"""forks.py fork|thread|METHOD: a process and its child, both at work; says the child's PID.

`thread` forks from a thread, which is the child's only one; METHOD is one of multiprocessing's.
"""

import json
import multiprocessing
import os
import sys
import threading
import time


def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    time.sleep(5 * seconds)  # for what else is started


def child_work(program):
    while os.path.exists("/proc/%d" % program):
        spin(0.001)


def parent_work():
    while True:
        spin(0.001)


def target(pipe, program):
    pipe.send(os.getpid())
    child_work(program)


def fork(said):
    program = os.getpid()
    child = os.fork()
    if child == 0:
        child_work(program)
        os._exit(0)
    said.append(child)


def fork_from_thread(said):
    threading.Thread(target=parent_work, daemon=True).start()
    threading.Thread(target=fork, args=(said,), daemon=True).start()
    while not said:
        time.sleep(0.01)


def start(method, said):
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe()
    process = context.Process(target=target, args=(sender, os.getpid()), daemon=True)
    process.start()
    said.append(receiver.recv())


def main():
    said = []
    if sys.argv[1] == "fork":
        fork(said)
    elif sys.argv[1] == "thread":
        fork_from_thread(said)
    else:
        start(sys.argv[1].partition("-")[2], said)
    print("ready", json.dumps(said[0]), flush=True)
    parent_work()


if __name__ == "__main__":
    main()
