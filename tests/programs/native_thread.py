# SPDX-License-Identifier: BSD-2-Clause
"""native_thread.py: a loop in Python, and a busy thread that never runs Python."""

import ctypes
import mmap
import os
import platform

# Machine code that jumps to itself.
FOREVER = {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}
TASKS = "/proc/self/task"


def start_native_thread():
    """Returns the memory with the thread's code, which must stay alive, and its TID."""
    code = mmap.mmap(-1, mmap.PAGESIZE,
                     prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(FOREVER[platform.machine()])
    entry = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    others = set(os.listdir(TASKS))
    thread = ctypes.c_ulong()
    create = ctypes.CDLL("libpthread.so.0").pthread_create
    assert create(ctypes.byref(thread), None, entry, None) == 0
    tid, = set(os.listdir(TASKS)) - others
    return code, tid


def spin():
    while True:
        sum(range(1000))


def main():
    _code, tid = start_native_thread()
    with open("%s/%s/comm" % (TASKS, tid), "w") as comm:
        comm.write("native spinner")
    print("ready")
    spin()


main()
