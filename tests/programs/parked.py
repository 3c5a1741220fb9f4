# SPDX-License-Identifier: BSD-2-Clause
"""parked.py: threads that stand still, each in a different stack, and CPython's account of the stacks.

Prints, after "ready": {"version": see portable.py, "runtime": see find_runtime, "code_type": address of
PyCode_Type, "native": the thread pointer of a thread without Python, "threads": {name: {"ident",
"stack"}}}.  A stack is [[name, first line, position, line], ...], leaf first. Positions are
counted as in the version.
"""

import ctypes
import json
import os
import sys
import threading
import time
import types

from portable import start_thread, version_and_build

if sys.version_info >= (3,):
    import _thread
    import suspending
else:
    import thread as _thread
    import suspending_2_7 as suspending

idents = {}
keep = []
barrier = _thread.allocate_lock()
barrier.acquire()


def park(name):
    idents[name] = _thread.get_ident()
    barrier.acquire()


def descend(name, depth):
    if depth:
        return descend(name, depth - 1)
    return park(name)


def produce(name):
    yield 1
    park(name)
    yield 2


def consume(name):
    for _ in suspending.delegate(produce(name)):
        pass


class Holder:
    @classmethod
    def hold(cls, name):
        cls.Inner()(name)

    class Inner:
        def __call__(self, name):
            sorted([name], key=lambda item: park(item))


def drive(name):
    suspending.await_it(park, name).send(None)


def comprehend(name):
    return [[descend(name, level) for level in (3,)] for _ in range(1)]


def sleep(name):
    idents[name] = _thread.get_ident()
    time.sleep(1000000)


def start_native():
    """Starts a thread without Python. Its pthread_t is its thread pointer."""
    library = ctypes.CDLL(None)
    thread = ctypes.c_void_p()
    pause = ctypes.cast(library.pause, ctypes.c_void_p)
    assert library.pthread_create(ctypes.byref(thread), None, pause, None) == 0
    return thread.value


def find_runtime():
    """The address of _PyRuntime. Up to 3.6, without one, the address of a pointer to the interpreter."""
    if sys.version_info >= (3, 7):
        return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    head = ctypes.pythonapi.PyInterpreterState_Head
    head.restype = ctypes.c_void_p
    keep.append(ctypes.c_void_p(head()))
    return ctypes.addressof(keep[0])


def describe(frame):
    stack = []
    unit = 2 if sys.version_info >= (3, 10) else 1
    while frame:
        code = frame.f_code
        stack.append([getattr(code, "co_qualname", code.co_name), code.co_firstlineno,
                      frame.f_lasti // unit, frame.f_lineno])
        frame = frame.f_back
    return stack


def are_asleep():
    """Whether all other threads of the process sleep."""
    own = os.path.basename(os.readlink("/proc/thread-self"))
    states = []
    for tid in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/stat" % tid) as stat:
            states.append(tid == own or stat.read().rpartition(")")[2].split()[0] == "S")
    return all(states)


def stand_still(expected):
    """Waits until each thread has reached its final place: it has not moved since the last look, 0.1 s
    ago, and sleeps."""
    while len(idents) < expected:
        time.sleep(0.01)
    before = None
    while True:
        time.sleep(0.1)
        frames = sys._current_frames()
        now = [describe(frames[ident]) for ident in idents.values()]
        if now == before and are_asleep():
            return
        before = now


def report(expected):
    stand_still(expected)
    frames = sys._current_frames()
    said = {
        "version": version_and_build(),
        "runtime": find_runtime(),
        "code_type": id(types.CodeType),
        "native": start_native(),
        "threads": {name: {"ident": ident, "stack": describe(frames[ident])}
                    for name, ident in idents.items()},
    }
    print("ready " + json.dumps(said))
    time.sleep(1000000)


def main():
    sys.setrecursionlimit(5000)
    threading.stack_size(64 << 20)
    functions = [consume, Holder.hold, drive, comprehend, sleep]
    for function in functions:
        _thread.start_new_thread(function, (function.__name__,))
    # park() and descend(name, 0) add two frames.
    depths = [49, 1000, 1022, 1024, 2500]
    for depth in depths:
        _thread.start_new_thread(descend, ("depth %d" % depth, depth - 2))
    start_thread(sleep, "threading")
    _thread.start_new_thread(report, (len(functions) + len(depths) + 2,))
    descend("main", 50)


main()
