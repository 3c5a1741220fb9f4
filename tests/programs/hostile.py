# SPDX-License-Identifier: BSD-2-Clause
"""hostile.py: functions whose names and files want to break what shows them."""

from time import thread_time

from hostile_names import FILE, NAMES

SOURCE = """
def victim():
    until = thread_time() + 0.002
    while thread_time() < until:
        pass
"""


def renamed(code, name):
    """CODE with another name; the long way round is for 3.7."""
    if hasattr(code, "co_qualname"):
        return code.replace(co_name=name, co_qualname=name)
    if hasattr(code, "replace"):
        return code.replace(co_name=name)
    return type(code)(
        code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize,
        code.co_flags, code.co_code, code.co_consts, code.co_names, code.co_varnames,
        code.co_filename, name, code.co_firstlineno, code.co_lnotab, code.co_freevars,
        code.co_cellvars)


def victims():
    for name in NAMES:
        scope = {"thread_time": thread_time}
        exec(compile(SOURCE, FILE, "exec"), scope)  # noqa: S102
        victim = scope["victim"]
        victim.__code__ = renamed(victim.__code__, name)
        yield victim


def main():
    functions = list(victims())
    print("ready", flush=True)
    while True:
        for function in functions:
            function()


main()
