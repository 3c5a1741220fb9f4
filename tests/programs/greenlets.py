# SPDX-License-Identifier: BSD-2-Clause
"""greenlets.py greenlet|gevent: greenlets that switch to each other deep in their calls, in two
threads.

Greenlet N of a thread recurses to depth 5 + N, through C (map) in every other call. At the bottom it
repeatedly spins and switches to the next greenlet, or to gevent's hub. Now and then it returns to
its root. Functions are named FUNCTION_THREAD_GREENLET.
"""

import sys

import gevent
import greenlet

from portable import start_thread

GREENLETS = 4
DEPTH = 5

SOURCE = """
def spin_{t}_{n}():
    for _ in range(20000):
        pass

def bottom_{t}_{n}(switch):
    for _ in range(20):
        spin_{t}_{n}()
        switch()

def descend_{t}_{n}(depth, switch):
    if not depth:
        bottom_{t}_{n}(switch)
    elif depth % 2:
        descend_{t}_{n}(depth - 1, switch)
    else:
        list(map(lambda_{t}_{n}, [depth - 1], [switch]))

def lambda_{t}_{n}(depth, switch):
    descend_{t}_{n}(depth, switch)

def root_{t}_{n}(switch):
    while True:
        descend_{t}_{n}({depth} + {n}, switch)
"""


def roots(t):
    scope = {}
    for n in range(GREENLETS):
        exec(SOURCE.format(t=t, n=n, depth=DEPTH), scope)
    return [scope["root_%d_%d" % (t, n)] for n in range(GREENLETS)]


def take_turns(t):
    running = [greenlet.greenlet(root) for root in roots(t)]

    def switch_from(n):
        return lambda: running[(n + 1) % GREENLETS].switch(switch_from((n + 1) % GREENLETS))

    running[0].switch(switch_from(0))


def be_scheduled(t):
    gevent.joinall([gevent.spawn(root, gevent.sleep) for root in roots(t)])


def main():
    work = be_scheduled if sys.argv[1] == "gevent" else take_turns
    start_thread(work, 1)
    print("ready")
    work(0)


main()
