# SPDX-License-Identifier: BSD-2-Clause
"""reuse.py: makes functions and throws them away, each at its predecessor's address.

`rare` runs for 0.1 s, then `heavy` for 0.9 s, and so on.
"""

import time


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
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
    print("ready", flush=True)
    while True:
        run("rare", 0.1)
        run("heavy", 0.9)


main()
