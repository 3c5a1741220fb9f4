# SPDX-License-Identifier: BSD-2-Clause
"""silent.py WHAT BY FOLDER [leaderless]: runs on, but other processes that read one of its pages, or open one
of its files, wait for ever.

WHAT is `header`, the first page of the program's file; `frame`, a page of the data stack (3.11 and
later) with only calling frames; `later`, the same after a line of input; `name`, a function's file;
`root`, its root folder, which is changed to FOLDER; or `command`, the page of the command line.
BY is the mechanism: `userfaultfd`, which never answers; `late`, the same, which answers after LATE_S; or
`fuse`, a file system on FOLDER, with a file that is mapped in place of the page.  A
`leaderless` process goes on without its first thread.
"""

import ctypes
import gc
import mmap
import os
import platform
import select
import struct
import sys
import threading
import time

DEPTH = 400
LATE_S = 0.5
PRIVATE, FIXED = 2, 16
CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000

SYS_USERFAULTFD = {"x86_64": 323, "aarch64": 282}[platform.machine()]
SYS_EXIT = {"x86_64": 60, "aarch64": 93}[platform.machine()]  # exit(2), which ends one thread
ARG_START = 45  # in /proc/PID/stat, behind the name
O_CLOEXEC = 0x80000
UFFD_API, UFFDIO_API, UFFDIO_REGISTER, UFFDIO_COPY = 0xaa, 0xc018aa3f, 0xc020aa00, 0xc028aa03
UFFD_MESSAGE_BYTES = 32
UFFDIO_REGISTER_MODE_MISSING = 1

library = ctypes.CDLL(None, use_errno=True)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                         ctypes.c_long]
library.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong,
                          ctypes.c_char_p]


def check(good, what):
    if not good:
        raise OSError(ctypes.get_errno(), what)


def replace(page, fd):
    """Maps FD, or empty memory if it is -1, in place of PAGE. The command line's page becomes read-only:
    then it cannot hold Python."""
    flags = PRIVATE | FIXED | (mmap.MAP_ANONYMOUS if fd < 0 else 0)
    access = mmap.PROT_READ | (0 if sys.argv[1] == "command" else mmap.PROT_WRITE)
    check(library.mmap(page, mmap.PAGESIZE, access, flags, fd, 0) == page, "mmap")


def silence_by_userfaultfd(page):
    fd = library.syscall(SYS_USERFAULTFD, O_CLOEXEC)
    check(fd >= 0, "userfaultfd")
    api = ctypes.create_string_buffer(struct.pack("QQQ", UFFD_API, 0, 0))
    check(library.ioctl(fd, ctypes.c_ulong(UFFDIO_API), api) == 0, "UFFDIO_API")
    replace(page, -1)
    region = ctypes.create_string_buffer(
        struct.pack("QQQQ", page, mmap.PAGESIZE, UFFDIO_REGISTER_MODE_MISSING, 0))
    check(library.ioctl(fd, ctypes.c_ulong(UFFDIO_REGISTER), region) == 0, "UFFDIO_REGISTER")
    return fd


def silence_for_a_while(page):
    content = ctypes.create_string_buffer(ctypes.string_at(page, mmap.PAGESIZE), mmap.PAGESIZE)
    fd = silence_by_userfaultfd(page)

    def answer():
        os.read(fd, UFFD_MESSAGE_BYTES)
        time.sleep(LATE_S)
        copy = ctypes.create_string_buffer(
            struct.pack("QQQQq", page, ctypes.addressof(content), mmap.PAGESIZE, 0, 0))
        check(library.ioctl(fd, ctypes.c_ulong(UFFDIO_COPY), copy) == 0, "UFFDIO_COPY")
    threading.Thread(target=answer).start()


class Server(threading.Thread):
    """A file system with one file, `file`, whose contents are never delivered.

    Once stopped it takes no requests, so that processes that wait for one can be killed.
    """

    LOOKUP, GETATTR, OPEN, RELEASE, FLUSH, INIT = 1, 3, 14, 18, 25, 26
    FILE, SIZE = 2, 1 << 20
    ROOT_MODE, FILE_MODE = 0o40755, 0o100755
    ENOSYS = 38

    def __init__(self, folder, known_s):
        super().__init__(daemon=True)
        # The kernel may cache attributes for this long.
        self.known_s = known_s
        self.stopped = threading.Event()
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
        # The mount is private to this process, and ends with it.
        check(library.unshare(CLONE_NEWNS) == 0, "unshare")
        check(library.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0, "private /")
        options = "fd=%d,rootmode=40000,user_id=0,group_id=0" % self.fd
        check(library.mount(b"silent", folder.encode(), b"fuse", 0, options.encode()) == 0, "mount")

    def attributes(self, node):
        mode, size = (self.FILE_MODE, self.SIZE) if node == self.FILE else (self.ROOT_MODE, 0)
        return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, kind, node):
        if kind == self.INIT:
            return struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 32, 0, *[0] * 8)
        if kind == self.LOOKUP:
            return struct.pack("<4Q2I", self.FILE, 0, 60, 60, 0, 0) + self.attributes(self.FILE)
        if kind == self.GETATTR:
            return struct.pack("<Q2I", self.known_s, 0, 0) + self.attributes(node)
        if kind == self.OPEN:
            return struct.pack("<Q2I", 1, 0, 0)
        return b"" if kind in (self.FLUSH, self.RELEASE) else None

    def run(self):
        while not self.stopped.is_set():
            if not select.select([self.fd], [], [], 0.02)[0]:
                continue
            _, kind, number, node = struct.unpack_from("<IIQQ", os.read(self.fd, 1 << 18))
            data = self.answer(kind, node)
            head = struct.pack("<IiQ", 16 + len(data or b""), -self.ENOSYS if data is None else 0, number)
            os.write(self.fd, head + (data or b""))


def silence_by_fuse(page):
    """Mounts the file system, and maps its file in place of PAGE, if given."""
    is_root = sys.argv[1] == "root"
    server = Server(sys.argv[3], 0 if is_root else 60)
    server.start()
    fd = os.open(os.path.join(sys.argv[3], "file"), os.O_RDONLY)
    if is_root:
        os.chroot(sys.argv[3])
    if page:
        replace(page, fd)
    # Close while the server still answers.
    os.close(fd)
    server.stopped.set()
    server.join()


SILENCE = {"userfaultfd": silence_by_userfaultfd, "late": silence_for_a_while, "fuse": silence_by_fuse}


def address_of(frame):
    """The address of the interpreter's frame: PyFrameObject points to it, after f_back."""
    return ctypes.c_size_t.from_address(id(frame) + object.__basicsize__ + 8).value


def page_of(what):
    if what in ("frame", "later"):
        return address_of(sys._getframe(DEPTH // 2)) & -mmap.PAGESIZE
    if what in ("name", "root"):
        return None
    if what == "command":
        with open("/proc/self/stat", encoding="utf-8") as stat:
            return int(stat.read().rpartition(")")[2].split()[ARG_START]) & -mmap.PAGESIZE
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return int(maps.readline().split("-")[0], 16)


def spin():
    while True:
        pass


def descend(depth, what, by):
    if depth:
        return descend(depth - 1, what, by)
    page = page_of(what)
    if what == "later":
        print("ready", flush=True)
        sys.stdin.readline()
    if "leaderless" in sys.argv:
        threading.Thread(target=spin).start()
    SILENCE[by](page)
    if what != "later":
        print("ready", flush=True)
    if "leaderless" in sys.argv:
        library.syscall(SYS_EXIT, 0)
    if what == "name":
        unnamed = spin.__code__.replace(co_filename=os.path.join(sys.argv[3], "folder", "spin.py"))
        return type(spin)(unnamed, globals())()
    return spin()


gc.disable()
descend(DEPTH, *sys.argv[1:3])
