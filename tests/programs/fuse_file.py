# SPDX-License-Identifier: BSD-2-Clause
"""fuse_file.py FILE FOLDER UID: mounts a file system at FOLDER that only user UID can read. Its only file is
`python3`, with the contents of FILE. Serves it until killed.

The protocol of /dev/fuse is in <linux/fuse.h>.
"""

import ctypes
import errno
import os
import stat
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
ROOT, FILE = 1, 2
NAME = b"python3\0"
FOREVER = 3600
KEEP_CACHE = 2
PAGES = 128 << 10


def attributes(node, size):
    mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o755
    return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body, content):
    """The reply, an errno, or None for no reply."""
    size = len(content) if node == FILE else 0
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 26, PAGES, 0, 16, 12, PAGES, 1, 32, 0, *[0] * 8)
    if opcode == LOOKUP:
        if body != NAME:
            return errno.ENOENT
        return struct.pack("<4Q2I", FILE, 0, FOREVER, FOREVER, 0, 0) + attributes(FILE, len(content))
    if opcode == GETATTR:
        return struct.pack("<Q2I", FOREVER, 0, 0) + attributes(node, size)
    if opcode == OPEN:
        return struct.pack("<Q2I", 0, KEEP_CACHE, 0)
    if opcode == READ:
        _, offset, length = struct.unpack("<QQI", body[:20])
        return content[offset:offset + length]
    if opcode in (RELEASE, FLUSH):
        return b""
    return None if opcode == FORGET else errno.ENOSYS


def serve(device, content):
    while True:
        try:
            request = os.read(device, PAGES + 4096)
        except OSError:
            return  # it was unmounted
        length, opcode, unique, node = struct.unpack("<2I2Q", request[:24])
        reply = answer(opcode, node, request[40:length], content)
        if reply is None:
            continue
        error, data = (-reply, b"") if isinstance(reply, int) else (0, reply)
        os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


def main():
    path, folder, uid = sys.argv[1:]
    with open(path, "rb") as file:
        content = file.read()
    device = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40000,user_id=%s,group_id=%s" % (device, uid, uid)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"fuse_file", folder.encode(), b"fuse.file", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("ready")
    sys.stdout.flush()
    serve(device, content)


main()
