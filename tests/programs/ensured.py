# SPDX-License-Identifier: BSD-2-Clause
"""ensured.py: threads created by C that repeatedly call into Python through PyGILState_Ensure.

Each of their calls gets a new thread state, which ends with the call. The first thread goes
from Python through C (qsort) into Python, which reuses its thread state.
"""

import ctypes
import mmap
import platform

# Machine code that calls the function in its argument for ever.
CALL_FOREVER = {
    "x86_64": b"\x53\x48\x89\xfb\xff\xd3\xeb\xfc",
    "aarch64": b"\xf3\x03\x00\xaa\x60\x02\x3f\xd6\xff\xff\xff\x17",
}
THREADS = 3

library = ctypes.CDLL(None)


def leaf():
    return sum(range(100))


def middle():
    for _ in range(20):
        leaf()


@ctypes.CFUNCTYPE(None)
def entered():
    middle()


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(_one, _other):
    middle()
    return 0


def reenter():
    numbers = (ctypes.c_int * 2)()
    while True:
        library.qsort(numbers, ctypes.c_size_t(2), ctypes.c_size_t(4), compare)


def start_native_threads():
    """Returns the memory with their code, which must stay alive."""
    code = mmap.mmap(-1, mmap.PAGESIZE,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(CALL_FOREVER[platform.machine()])
    entry = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    create = ctypes.CDLL("libpthread.so.0").pthread_create
    thread = ctypes.c_ulong()
    for _ in range(THREADS):
        assert create(ctypes.byref(thread), None, entry, entered) == 0
    return code


def main():
    _code = start_native_threads()
    print("ready")
    reenter()


main()
