# SPDX-License-Identifier: BSD-2-Clause
"""Workers of an InterpreterPoolExecutor (3.14 and later), and a thread that calls a function in an
interpreter."""

from concurrent import futures, interpreters
import threading

WORKERS = 2
SOURCE = """
def pool_spin():
    import time
    until = time.monotonic() + 0.02
    while time.monotonic() < until:
        pass

pool_spin()
"""


def called():
    import time
    until = time.monotonic() + 0.02
    while time.monotonic() < until:
        pass


def call():
    interpreter = interpreters.create()
    while True:
        interpreter.call(called)


threading.Thread(target=call, daemon=True).start()
with futures.InterpreterPoolExecutor(WORKERS) as pool:
    pool.submit(exec, SOURCE).result()
    print("ready", flush=True)
    while True:
        for future in [pool.submit(exec, SOURCE) for _ in range(WORKERS)]:
            future.result()
