# SPDX-License-Identifier: BSD-2-Clause
"""After a line of input, one thread waits to write into a pipe that is full, and another for a page that never
comes: userfaultfd has it, and nobody answers."""

import ctypes
import mmap
import os
import platform
import select
import struct
import sys
import threading

SYS_USERFAULTFD = {"x86_64": 323, "aarch64": 282}[platform.machine()]
O_CLOEXEC = 0x80000
UFFD_API, UFFDIO_API, UFFDIO_REGISTER = 0xaa, 0xc018aa3f, 0xc020aa00
UFFDIO_REGISTER_MODE_MISSING = 1
MUCH = 1 << 20  # more than any pipe takes

library = ctypes.CDLL(None, use_errno=True)


def control(fd, request, *words):
    argument = ctypes.create_string_buffer(struct.pack("%dQ" % len(words), *words))
    if library.ioctl(fd, ctypes.c_ulong(request), argument):
        raise OSError(ctypes.get_errno(), "ioctl")


def write_here(end):
    os.write(end, b"x" * MUCH)


def touch_here(memory):
    memory[0] = b"x"


def main():
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    first = ctypes.c_char.from_buffer(memory)
    faults = library.syscall(SYS_USERFAULTFD, O_CLOEXEC)
    if faults < 0:
        raise OSError(ctypes.get_errno(), "userfaultfd")
    control(faults, UFFDIO_API, UFFD_API, 0, 0)
    control(faults, UFFDIO_REGISTER, ctypes.addressof(first), mmap.PAGESIZE, UFFDIO_REGISTER_MODE_MISSING, 0)
    pipe = os.pipe()
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    writer = threading.Thread(target=write_here, args=(pipe[1],))
    writer.daemon = True
    writer.start()
    # Once the pipe has something, the writer is in its one system call.
    select.select([pipe[0]], [], [])
    touch_here(ctypes.cast(ctypes.addressof(first), ctypes.POINTER(ctypes.c_char)))


main()
