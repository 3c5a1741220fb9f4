# SPDX-License-Identifier: BSD-2-Clause
"""deny.py CALL ERRNO COMMAND...: runs COMMAND, whose system calls of that number all fail so.

As the seccomp filter of a container does.
"""

import ctypes
import os
import struct
import sys

SET_NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7fff0000, 0x00050000


def main():
    call, error = int(sys.argv[1]), int(sys.argv[2])
    steps = [(LOAD_WORD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, call), (RETURN, 0, 0, FAIL | error),
             (RETURN, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(SET_SECCOMP, FILTER, program):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[3], sys.argv[3:])


main()
