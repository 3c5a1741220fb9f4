# SPDX-License-Identifier: BSD-2-Clause
"""names.py: functions of every kind of name, each with the same share of the CPU."""

from time import thread_time

STEP = 0.002


def spin():
    until = thread_time() + STEP
    while thread_time() < until:
        pass


def plain():
    spin()


class Outer:
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

    class Inner:
        def __call__(self):
            spin()


def enclosing():
    def nested():
        spin()

    nested()


anonymous = lambda: spin()  # noqa: E731: a lambda is what is wanted


def comprehend():
    return [spin() for _ in range(1)]


def set_comprehend():
    return {spin() for _ in range(1)}


def consume():
    return list(spin() for _ in range(1))


def produce():
    yield spin()


async def coroutine():
    spin()


def drive():
    try:
        coroutine().send(None)
    except StopIteration:
        pass


def café():
    spin()


def функция():
    spin()


def 関数():
    spin()


def 𐌰𐌱():
    spin()


class Größe:
    def 測る(self):
        spin()


def long_name():
    spin()


def make_long():
    """A function whose name has 4,096 characters."""
    scope = {"spin": spin}
    name = "x" * 4096
    exec("def %s():\n    spin()\n" % name, scope)  # noqa: S102
    return scope[name]


def main():
    outer = Outer()
    very_long = make_long()
    print("ready", flush=True)
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
        drive()
        café()
        функция()
        関数()
        𐌰𐌱()
        Größe().測る()
        very_long()


main()
