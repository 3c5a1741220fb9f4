# SPDX-License-Identifier: BSD-2-Clause
"""interpreters.py CREATOR OWN_GIL [MODULE]: threads that each call through interpreters of their own.

Thread N runs turn_N_0 in the main interpreter. It calls turn_N_1 in a second interpreter, which
calls turn_N_2 in a third one. Each turn spins equally long before and after its call, so each level
has a third of the thread's CPU time. CREATOR is "thread" if each thread creates its interpreters,
or "main" if the main thread creates all of them. They have their own GIL if OWN_GIL is 1 and
the version supports it. MODULE "public" is concurrent.interpreters (3.14 and later, always with
own GILs). The default is the private module below it.
"""

import sys
import threading

THREADS = 3
LEVELS = 3

MODULES = {
    "private": """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

run = interpreters.run_string
""",
    "public": """
from concurrent import interpreters

def run(number, source):
    interpreters.Interpreter(number).exec(source)
"""}

module = sys.argv[3] if len(sys.argv) > 3 else "private"
exec(MODULES[module])

TURN = MODULES[module] + """
import time

def spin_{n}_{level}():
    until = time.thread_time() + 0.004
    while time.thread_time() < until:
        pass

def turn_{n}_{level}():
    spin_{n}_{level}()
    {inner}
    spin_{n}_{level}()
"""


def turn_source(n, level, inner):
    call = "pass"
    if inner is not None:
        call = "run(%d, 'turn_%d_%d()')" % (inner, n, level + 1)
    return TURN.format(n=n, level=level, inner=call)


def create(own_gil):
    if module == "public":
        return interpreters.create()
    if sys.version_info >= (3, 13):
        return interpreters.create("isolated" if own_gil else "legacy")
    if sys.version_info >= (3, 12):
        return interpreters.create(isolated=own_gil)
    return interpreters.create()


def create_all(own_gil):
    return [create(own_gil) for _ in range(LEVELS - 1)]


def work(n, own_gil, created, begun):
    created = created or create_all(own_gil)  # interpreters live as long as these objects
    ids = [getattr(interp, "id", None) or int(interp) for interp in created] + [None]
    for level in range(1, LEVELS):
        run(ids[level - 1], turn_source(n, level, ids[level]))
    scope = {}
    exec(turn_source(n, 0, ids[0]), scope)
    turn = scope["turn_%d_0" % n]
    turn()
    begun.wait()
    while True:
        turn()


def main():
    by_main, own_gil = sys.argv[1] == "main", sys.argv[2] == "1"
    begun = threading.Barrier(THREADS + 1)
    for n in range(THREADS):
        created = create_all(own_gil) if by_main else None
        threading.Thread(target=work, args=(n, own_gil, created, begun), daemon=True).start()
    begun.wait()
    print("ready", flush=True)
    threading.Event().wait()


main()
