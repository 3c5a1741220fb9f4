# SPDX-License-Identifier: BSD-2-Clause
"""burn.py SECONDS [wait] [exit=CODE] [print=TEXT]: uses SECONDS of CPU time, then ends.

`wait` first waits for a line on standard input.
"""

import sys

from portable import thread_time


def inner_loop(until):
    while thread_time() < until:
        pass


def burn(seconds):
    inner_loop(thread_time() + seconds)


def main():
    options = dict(argument.partition("=")[::2] for argument in sys.argv[2:])
    if "print" in options:
        print(options["print"])
        sys.stdout.flush()
    if "wait" in options:
        print("ready")
        sys.stdout.flush()
        sys.stdin.readline()
    burn(float(sys.argv[1]))
    sys.exit(int(options.get("exit", 0)))


main()
