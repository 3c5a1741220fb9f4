# SPDX-License-Identifier: BSD-2-Clause
"""names.py: functions with every kind of name, each with the same share of the CPU.

names_3.py has the functions that 2.7 cannot compile. 2.7 uses names of bytes instead.
"""

import sys

from portable import renamed, thread_time

STEP = 0.002


def spin():
    until = thread_time() + STEP
    while thread_time() < until:
        pass


def plain():
    spin()


class Outer(object):
    def method(self):
        spin()

    @classmethod
    def class_method(cls):
        spin()

    @staticmethod
    def static_method():
        spin()

    @property
    def value(self):
        return spin()

    class Inner(object):
        def __call__(self):
            spin()


def enclosing():
    def nested():
        spin()

    nested()


anonymous = lambda: spin()  # noqa: E731: this must be a lambda


def comprehend():
    return [spin() for _ in range(1)]


def set_comprehend():
    return {spin() for _ in range(1)}


def consume():
    return list(spin() for _ in range(1))


def produce():
    yield spin()


def make_long():
    """A function whose name has 4,096 characters."""
    scope = {"spin": spin}
    name = "x" * 4096
    exec("def %s():\n    spin()\n" % name, scope)  # noqa: S102
    return scope[name]


def make_others():
    """Functions whose names only 3 can spell, or only 2.7 can have: bytes, valid UTF-8 or not."""
    if sys.version_info >= (3,):
        import names_3
        return names_3.functions(spin)
    return [type(spin)(renamed(plain.__code__, name), globals())
            for name in ("caf\xc3\xa9", "caf\xe9", "nul\0byte")]


def main():
    outer = Outer()
    very_long = make_long()
    others = make_others()
    print("ready")
    while True:
        plain()
        outer.method()
        Outer.class_method()
        Outer.static_method()
        outer.value
        Outer.Inner()()
        enclosing()
        anonymous()
        comprehend()
        set_comprehend()
        consume()
        list(produce())
        very_long()
        for function in others:
            function()


main()
