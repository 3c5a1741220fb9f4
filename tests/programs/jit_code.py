# SPDX-License-Identifier: BSD-2-Clause
"""jit_code.py HOW: generates two functions of machine code, as a JIT does, and calls them.

It names them in its perf map.  HOW: `whole`, a correct map; `foreign`, a map owned by another user; `link`, a
symbolic link to a correct map; `later`, a correct map once it reads a line.
"""

import ctypes
import mmap
import os
import platform
import select
import sys

# Machine code that counts its argument down to 0.
CODE = {
    "x86_64": b"\x48\x89\xf8\x48\xff\xc8\x75\xfb\xc3",
    "aarch64": b"\x00\x04\x00\xf1\xe1\xff\xff\x54\xc0\x03\x5f\xd6",
}[platform.machine()]
PROT_EXEC = 4
STEP = 64
ROUNDS = 3000000
NOBODY = 65534

libc = ctypes.PyDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
start = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE | PROT_EXEC,
                  mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)


def make(number):
    ctypes.memmove(start + STEP * number, CODE, len(CODE))
    return ctypes.PYFUNCTYPE(None, ctypes.c_ulong)(start + STEP * number)


def write(how):
    name = "/tmp/perf-%d.map" % os.getpid()
    path = name + ".real" if how == "link" else name
    with open(path, "w") as file:
        file.write("%x %x first leaf\n0x%x 0x%x second\n" % (start, STEP, start + STEP, STEP))
    if how == "link":
        os.symlink(os.path.basename(path), name)
    if how == "foreign":
        os.chown(name, NOBODY, NOBODY)


def call_first():
    first(ROUNDS)


def call_second():
    second(ROUNDS)


first, second = make(0), make(1)
how = sys.argv[1]
if how != "later":
    write(how)
print("ready")
sys.stdout.flush()
while True:
    call_first()
    call_second()
    if how == "later" and select.select([sys.stdin], [], [], 0)[0]:
        sys.stdin.readline()
        write(how)
        how = "whole"
