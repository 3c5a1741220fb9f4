# SPDX-License-Identifier: BSD-2-Clause
"""deny.py CALL ERRNO COMMAND...: runs COMMAND, and lets its system call number CALL fail with ERRNO.

It uses a seccomp filter, as containers do. With CALL:ARGUMENT=VALUE only calls fail whose argument number
ARGUMENT, from 0 on, is VALUE.
"""

import ctypes
import os
import struct
import sys

SET_NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7fff0000, 0x00050000
ARGUMENTS, ARGUMENT_BYTES = 16, 8  # in struct seccomp_data


def main():
    call, _, condition = sys.argv[1].partition(":")
    tests = [(0, int(call))]
    if condition:
        argument, _, value = condition.partition("=")
        tests.append((ARGUMENTS + int(argument) * ARGUMENT_BYTES, int(value)))
    steps = [(RETURN, 0, 0, FAIL | int(sys.argv[2])), (RETURN, 0, 0, ALLOW)]
    for place, value in reversed(tests):
        steps = [(LOAD_WORD, 0, 0, place), (JUMP_IF_EQUAL, 0, len(steps) - 1, value), *steps]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or prctl(SET_SECCOMP, FILTER, program):
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[3], sys.argv[3:])


main()
