# SPDX-License-Identifier: BSD-2-Clause
"""hostile.py: functions whose names and files want to break what shows them."""

import sys

from hostile_names import FILE, NAMES
from portable import renamed, thread_time

SOURCE = """
def victim():
    until = thread_time() + 0.002
    while thread_time() < until:
        pass
"""


def native(name):
    """NAME as this Python has names: 2.7 in bytes, which for a lone surrogate are no UTF-8."""
    return name if sys.version_info >= (3,) else name.encode("utf-8")


def victims():
    for name in NAMES:
        scope = {"thread_time": thread_time}
        exec(compile(SOURCE, native(FILE), "exec"), scope)  # noqa: S102
        victim = scope["victim"]
        victim.__code__ = renamed(victim.__code__, native(name))
        yield victim


def main():
    functions = list(victims())
    print("ready")
    while True:
        for function in functions:
            function()


main()
