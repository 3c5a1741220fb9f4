# SPDX-License-Identifier: BSD-2-Clause
"""reuse.py: makes functions and throws them away, each at its predecessor's address.

`rare` uses the seconds of CPU time of the first argument, then `heavy` 9 times as many, and so on.
"""

import sys
import time


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def renamed(code, name):
    """CODE under another name and file name."""
    if hasattr(code, "co_qualname"):
        return code.replace(co_name=name, co_filename=name + ".py", co_qualname=name)
    if hasattr(code, "replace"):
        return code.replace(co_name=name, co_filename=name + ".py")
    return type(code)(code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize,
                      code.co_flags, code.co_code, code.co_consts, code.co_names,
                      code.co_varnames, name + ".py", name, code.co_firstlineno,
                      code.co_lnotab, code.co_freevars, code.co_cellvars)


def run(name, seconds):
    type(spin)(renamed(spin.__code__, name), globals())(seconds)


def main():
    turn = float(sys.argv[1])
    print("ready", flush=True)
    while True:
        run("rare", turn)
        run("heavy", 9 * turn)


main()
