# SPDX-License-Identifier: BSD-2-Clause
"""burn.py SECONDS [wait] [exit=CODE] [print=TEXT]: uses the CPU for so long, then ends.

`wait` first waits for a line on standard input.
"""

import sys
import time


def inner_loop(until):
    while time.thread_time() < until:
        pass


def burn(seconds):
    inner_loop(time.thread_time() + seconds)


def main():
    options = dict(argument.partition("=")[::2] for argument in sys.argv[2:])
    if "print" in options:
        print(options["print"], flush=True)
    if "wait" in options:
        print("ready", flush=True)
        sys.stdin.readline()
    burn(float(sys.argv[1]))
    sys.exit(int(options.get("exit", 0)))


main()
