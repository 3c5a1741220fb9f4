# SPDX-License-Identifier: BSD-2-Clause
"""native_chain.py LIBRARY OTHER CHAIN...: Python calls C, which calls Python, over and over.

LIBRARY and OTHER are built from native_chain.c with different options.  A CHAIN is a function here that
starts a chain of calls, down to chain_spin() or another function that uses the CPU.  `threaded` and `late`
do not return: the first starts a thread without Python, the second loads OTHER once it reads a line.
With `end` the program ends after END_S of CPU time.
"""

import ctypes
import functools
import itertools
import os
import re
import select
import signal
import sys

CALLBACK = ctypes.CFUNCTYPE(None)
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LEVELS = 60
END_S = 3


class Library(object):
    """The functions of a library. All but chain_call_back run with the GIL."""

    def __init__(self, path):
        library = ctypes.PyDLL(path)
        self.chain_spin, self.chain_read = library.chain_spin, library.chain_read
        self.chain_enter, self.chain_pass = library.chain_enter, library.chain_pass
        self.chain_deep, self.chain_signal = library.chain_deep, library.chain_signal
        self.chain_start_thread = library.chain_start_thread
        self.chain_call_back = ctypes.CDLL(path).chain_call_back
        self.chain_signal_elsewhere, self.send_signal = library.chain_signal_elsewhere, library.send_signal
        self.chain_scribble, self.chain_stray = library.chain_scribble, library.chain_stray
        for function in self.chain_enter, self.chain_pass, self.chain_signal, self.chain_signal_elsewhere:
            function.argtypes = [ctypes.py_object]
        for function in self.chain_scribble, self.chain_stray:
            function.argtypes = [ctypes.c_ulong]
            function.restype = None
        self.chain_deep.argtypes = [ctypes.c_uint, ctypes.py_object]


chain = Library(sys.argv[1])
other = Library(sys.argv[2]) if "late" not in sys.argv else None
spin = chain.chain_spin
qsort = ctypes.CDLL(None).qsort
numbers = (ctypes.c_int * 2)(2, 1)
status = os.open("/proc/self/status", os.O_RDONLY)


def mixed():
    chain.chain_enter(mixed_middle)


def mixed_middle():
    chain.chain_pass(mixed_inner)


def mixed_inner():
    spin()


def back():
    chain.chain_call_back(back_callback)


@CALLBACK
def back_callback():
    back_inner()


def back_inner():
    spin()


def key():
    sorted([0], key=key_of)


def key_of(number):
    spin()
    return number


def less():
    sorted([Number(), Number()])


class Number(object):
    def __lt__(self, other_number):
        spin()
        return True


def reducing():
    functools.reduce(reduce_two, [1, 2])


def reduce_two(one, two):
    spin()
    return one + two


def quick():
    qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), quick_compare)


@COMPARE
def quick_compare(one, two):
    spin()
    return 0


def mapping():
    list(map(map_one, [0]))


def map_one(number):
    spin()
    return number


def replacing():
    re.sub("a", replace_match, "a")


def replace_match(match):
    spin()
    return match.group(0)


def consume():
    for _ in produce():
        pass


def produce():
    spin()
    yield


def consume_by_c():
    chain.chain_enter(produce_next)


def produce_for_c():
    while True:
        spin()
        yield


producer = produce_for_c()
produce_next = producer.__next__ if sys.version_info >= (3,) else producer.next


def deep():
    chain.chain_deep(LEVELS, deep_inner)


def deep_inner():
    spin()


def signalled():
    chain.chain_signal(handle)


def handle():
    spin()


def signalled_elsewhere():
    chain.chain_signal_elsewhere(handle)


def raising():
    chain.send_signal()


def on_raise(number, frame):
    spin()


signal.signal(signal.SIGUSR2, on_raise)

# Invalid addresses, and addresses of the heap and of a file's data.
places = itertools.cycle([0, 1, 2 ** 64 - 1, 2 ** 63, id(signal), id(None)])


def scribbling():
    chain.chain_scribble(next(places))


def straying():
    chain.chain_stray(next(places))


def reading():
    chain.chain_enter(read)


def read():
    chain.chain_read(status)


def broken():
    chain.chain_enter(broken_middle)


def broken_middle():
    other.chain_pass(broken_inner)


def broken_inner():
    spin()


def broken_leaf():
    chain.chain_enter(broken_spin)


def broken_spin():
    other.chain_spin()


def threaded():
    chain.chain_start_thread()
    while True:
        spin()


def late():
    while not select.select([sys.stdin], [], [], 0)[0]:
        sum(range(1000))
    library = Library(sys.argv[2])
    while True:
        library.chain_enter(late_inner)


def late_inner():
    spin()


def end():
    if sum(os.times()[:2]) > END_S:
        sys.exit()


if sys.version_info >= (3,):
    import native_chain_3
    tasks = functools.partial(native_chain_3.tasks, chain)


def main():
    chains = [globals()[name] for name in sys.argv[3:]]
    print("ready")
    sys.stdout.flush()
    while True:
        for begin in chains:
            begin()


main()
