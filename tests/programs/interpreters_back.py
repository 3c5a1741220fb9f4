# SPDX-License-Identifier: BSD-2-Clause
"""interpreters_back.py LIBRARY: C code calls from the main interpreter into another one, and from there back
into the main one's thread state.

LIBRARY is built from sub_interpreter.c. outer() spins and runs middle() in a new interpreter. middle() spins
and runs innermost() in the main one, which spins.
"""

import ctypes
import sys

from portable import thread_time

library = ctypes.PyDLL(sys.argv[1])

INNER = """
import ctypes, sys
sys.path.insert(0, {folder!r})
from portable import thread_time
library = ctypes.PyDLL({library!r})

def middle():
    until = thread_time() + 0.03
    while thread_time() < until:
        pass
    library.run_in_caller(b"innermost()")

middle()
""".format(folder=sys.path[0], library=sys.argv[1]).encode("utf-8")


def innermost():
    until = thread_time() + 0.03
    while thread_time() < until:
        pass


def outer():
    until = thread_time() + 0.03
    while thread_time() < until:
        pass
    library.run_in_another(INNER)


print("ready")
sys.stdout.flush()
while True:
    outer()
