# SPDX-License-Identifier: BSD-2-Clause
"""dropped.py SECONDS (name|file|method): functions that are compiled, called and dropped in turn.

Each function reuses all addresses of the last one. Function N runs for SECONDS, and is called from line N
of calls.py by `call`. The functions differ in their names, or only in their files' names, or are methods
of one name in differently named classes.
"""

import os
import sys

from portable import thread_time

NUMBERS = range(2, 10)
SOURCES = {
    "name": "def function_%d(end, now):\n    while now() < end:\n        pass\nmade = function_%d\n",
    "file": "def function(end, now):\n    while now() < end:\n        pass\nmade = function\n",
    "method": "class Class%d(object):\n    def function(self, end, now):\n        while now() < end:\n"
              "            pass\nmade = Class%d().function\n",
}
CALLS = "def call(number, function, end, now):\n" + "".join(
    "    if number == %d: return function(end, now)\n" % number for number in NUMBERS)


def make(number, kind):
    source = SOURCES[kind]
    space = {}
    filename = "dropped_%d.py" % number if kind == "file" else "dropped.txt"
    exec(compile(source % ((number,) * source.count("%d")), filename, "exec"), space)
    made = space["made"]
    space.clear()  # the function's globals would keep it alive
    return made


def main():
    seconds, kind = float(sys.argv[1]), sys.argv[2]
    space = {}
    exec(compile(CALLS, "calls.py", "exec"), space)
    call = space["call"]
    print("ready")
    sys.stdout.flush()
    parent = os.getppid()
    while os.getppid() == parent:
        for number in NUMBERS:
            function = make(number, kind)
            call(number, function, thread_time() + seconds, thread_time)
            del function


main()
