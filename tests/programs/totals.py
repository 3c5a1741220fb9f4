# SPDX-License-Identifier: BSD-2-Clause
"""Numbers that a running program passes to its test: doubles in a file that both map."""

import mmap
import os
import struct
import threading


def map_file(path, size):
    """A shared, writable mapping of SIZE bytes of the file at PATH."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


class Totals:
    """COUNT doubles, each written by one thread."""

    def __init__(self, path, count):
        self.layout = struct.Struct("%dd" % count)
        self.memory = map_file(path, self.layout.size)

    def store(self, values):
        self.layout.pack_into(self.memory, 0, *values)

    def load(self):
        return self.layout.unpack_from(self.memory, 0)


def set_thread_name(name):
    """Names the calling thread, for the kernel too, and returns its TID."""
    threading.current_thread().name = name
    tid = int(os.path.basename(os.readlink("/proc/thread-self")))
    with open("/proc/self/task/%d/comm" % tid, "wb") as comm:
        comm.write(name if isinstance(name, bytes) else name.encode("utf-8"))
    return tid
