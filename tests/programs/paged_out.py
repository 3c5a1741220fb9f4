# SPDX-License-Identifier: BSD-2-Clause
"""paged_out.py: runs in a deep stack whose middle is not in memory.

A page that holds only calling frames (of the data stack from 3.11 on) is replaced by a private
mapping of a file with the same bytes.  Like a swapped-out page, it is on disk, and comes into
memory at the first access that may wait. The program itself does not touch it.
"""

import ctypes
import gc
import mmap
import os
import sys
import tempfile

DEPTH = 400
PRIVATE, FIXED = 2, 16

library = ctypes.CDLL(None, use_errno=True)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                         ctypes.c_long]


def find_page(frame):
    """The page of the interpreter's frame. From 3.11 on, the object points to it, after f_back."""
    address = id(frame)
    if sys.version_info >= (3, 11):
        address = ctypes.c_size_t.from_address(address + object.__basicsize__ + 8).value
    return address & -mmap.PAGESIZE


def page_out(page):
    with tempfile.TemporaryFile() as file:
        file.write(ctypes.string_at(page, mmap.PAGESIZE))
        file.flush()
        os.fsync(file.fileno())
        assert library.mmap(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, PRIVATE | FIXED,
                            file.fileno(), 0) == page


def spin():
    while True:
        pass


def descend(depth):
    if depth:
        return descend(depth - 1)
    # No reference to the frame is left: dropping one later would touch the page.
    page_out(find_page(sys._getframe(DEPTH // 2)))
    print("ready")
    sys.stdout.flush()
    return spin()


gc.disable()
descend(DEPTH)
