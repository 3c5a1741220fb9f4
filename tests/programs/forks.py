# SPDX-License-Identifier: BSD-2-Clause
"""forks.py fork|thread|mp-METHOD: a busy process and its busy child. Prints the child's PID.

`thread` forks from a second thread, the only one in the child. METHOD is a start method of multiprocessing.
"""

import json
import multiprocessing
import os
import sys
import threading
import time

from portable import start_thread, thread_time


def spin(seconds):
    until = thread_time() + seconds
    while thread_time() < until:
        pass
    time.sleep(5 * seconds)  # leave the CPU to other processes of the test


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
    threading.current_thread().name = "a thread that forks"
    child = os.fork()
    if child == 0:
        child_work(program)
        os._exit(0)
    said.append(child)


def fork_from_thread(said):
    start_thread(parent_work)
    start_thread(fork, said)
    while not said:
        time.sleep(0.01)


def start(method, said):
    # 2.7 has only this method.
    old = sys.version_info < (3,) and method == "fork"
    context = multiprocessing if old else multiprocessing.get_context(method)
    receiver, sender = context.Pipe()
    process = context.Process(target=target, args=(sender, os.getpid()))
    process.daemon = True
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
    print("ready " + json.dumps(said[0]))
    parent_work()


if __name__ == "__main__":
    main()
