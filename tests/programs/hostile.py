# SPDX-License-Identifier: BSD-2-Clause
"""hostile.py: functions with names and files that try to break the output formats."""

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
    """NAME as this Python's str: in 2.7 bytes, which for a lone surrogate are not UTF-8."""
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
