# SPDX-License-Identifier: BSD-2-Clause
"""family.py HOW SECONDS|COUNT: a process and its children, which it starts in the way HOW. Children use
CPU time in `in_child`.

  fork         os.fork
  fork_twice   a daemon: forked twice, with setsid between
  pool         a multiprocessing pool with this version's default method
  spawn        multiprocessing's spawn
  forkserver   multiprocessing's forkserver
  exec         a shell that executes this program
  shell        a shell that starts this program and waits
  storm        COUNT children, two at a time, with 0.1 s of work each
  brief        COUNT children, one after the other, with some milliseconds of work each
  brief_exec   the same, and then they execute `sleep`
  deeply       as `fork`, after stacks of every depth from 900 down, and idle children
  deeply_twice the same, as `fork_twice`
  deeply_exec  the same, but this process executes this program again
"""

import os
import sys

from portable import thread_time


AT_ONCE = 2


def burn(seconds):
    end = thread_time() + seconds
    while thread_time() < end:
        sum(range(1000))


def in_parent(seconds):
    burn(seconds)


def in_child(seconds):
    burn(seconds)


def fork(seconds):
    pid = os.fork()
    if not pid:
        in_child(seconds)
        os._exit(0)
    in_parent(seconds)
    os.waitpid(pid, 0)


def fork_twice(seconds):
    pid = os.fork()
    if not pid:
        os.setsid()
        if not os.fork():
            in_child(seconds)
        os._exit(0)
    os.waitpid(pid, 0)
    in_parent(1.5 * seconds)


def pool(seconds, method=None):
    import multiprocessing

    context = multiprocessing.get_context(method)
    with context.Pool(2) as workers:
        workers.map(in_child, [seconds / 2] * 4)


def spawn(seconds):
    pool(seconds, "spawn")


def forkserver(seconds):
    pool(seconds, "forkserver")


def again(seconds, words):
    """Runs this program again through a shell."""
    import subprocess

    child = [sys.executable, __file__, "child", str(seconds)]
    subprocess.call(["sh", "-c", words, "sh"] + child)


def exec_(seconds):
    again(seconds, 'exec "$@"')


def shell(seconds):
    again(seconds, '"$@"; true')


def storm(count, seconds="0.1"):
    import subprocess

    running = []
    for _ in range(int(count)):
        if len(running) == AT_ONCE:
            running.pop(0).wait()
        running.append(subprocess.Popen([sys.executable, "-S", __file__, "child", seconds]))
    for started in running:
        started.wait()


def brief(count, end=lambda: os._exit(0)):
    for _ in range(int(count)):
        pid = os.fork()
        if not pid:
            in_child(0.003)
            end()
        os.waitpid(pid, 0)


def brief_exec(count):
    brief(count, lambda: os.execvp("sleep", ["sleep", "0.02"]))


def burn_below(depth):
    if depth:
        burn_below(depth - 1)
    else:
        burn(0.002)


def deeply(seconds, how=fork):
    for depth in range(900, 0, -1):
        burn_below(depth)
    for _ in range(10):
        fork(0)
    how(seconds)


def deeply_twice(seconds):
    deeply(seconds, fork_twice)


def deeply_exec(seconds):
    deeply(seconds, exec_itself)


def exec_itself(seconds):
    os.execv(sys.executable, [sys.executable, __file__, "child", str(seconds)])


def child(seconds):
    in_child(seconds)


if __name__ == "__main__":
    how = {"fork": fork, "fork_twice": fork_twice, "pool": pool, "spawn": spawn,
           "forkserver": forkserver, "exec": exec_, "shell": shell, "storm": storm, "brief": brief,
           "brief_exec": brief_exec, "deeply": deeply, "deeply_twice": deeply_twice,
           "deeply_exec": deeply_exec, "child": child}[sys.argv[1]]
    if sys.argv[1] != "child":
        print("ready")
        sys.stdout.flush()
        sys.stdin.readline()
    how(float(sys.argv[2]))
