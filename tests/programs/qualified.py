# SPDX-License-Identifier: BSD-2-Clause
"""qualified.py: functions in classes of every kind, each with the same share of the CPU.

Some are found by no path or by a wrong name, and must not get a qualified name.
"""

import functools
import json

from portable import thread_time

STEP = 0.002


def spin():
    until = thread_time() + STEP
    while thread_time() < until:
        pass


def wrapping(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


def same_name(function):
    """A wrapper with the same name as the wrapped function."""
    @functools.wraps(function)
    def decorated_alike(*arguments):
        return function(*arguments)
    return decorated_alike


def plainly(function):
    def plain_wrapper(*arguments):
        return function(*arguments)
    return plain_wrapper


class Base(object):
    def inherited(self):
        spin()

    def same(self):
        spin()

    @staticmethod
    def static_method():
        spin()

    @classmethod
    def class_method(cls):
        spin()

    @property
    def value(self):
        spin()

    @value.setter
    def value(self, new):
        spin()

    @wrapping
    def decorated(self):
        spin()

    @same_name
    def decorated_alike(self):
        spin()

    @plainly
    def decorated_plainly(self):
        spin()

    def __private(self):
        spin()

    def replaced(self):
        raise AssertionError

    def call_private(self):
        self.__private()

    class Nested(object):
        class Deeper(object):
            def innermost(self):
                spin()


class Derived(Base):
    def same(self):
        spin()


def replacement(self):
    spin()


Base.replaced = replacement
alias = Base.inherited


def renamed():
    spin()


renamed.__qualname__ = "Elsewhere.renamed"


def shared():
    spin()


# A second function with the same code object and another qualified name: neither is used.
shared_again = type(shared)(shared.__code__, globals())
shared_again.__qualname__ = "Other.shared"


def make_row(name):
    """A class like namedtuple's: its method shares its code object with those of the others."""
    def convert(self):
        spin()
    convert.__qualname__ = name + ".convert"
    return type(name, (object,), {"convert": convert})


Row = make_row("Row")
hidden_rows = [make_row("Hidden")]


def enclosing():
    def within():
        spin()

    class Local(object):
        def of_local(self):
            spin()

    within()
    Local().of_local()


class Cycle(object):
    def around(self):
        spin()


Cycle.itself = Cycle
Cycle.wrapped = staticmethod(Cycle)
Cycle.around.__wrapped_by__ = Cycle


def run():
    derived = Derived()
    derived.inherited()
    derived.same()
    Base.same(derived)
    derived.static_method()
    derived.class_method()
    derived.value
    derived.value = 1
    derived.decorated()
    derived.decorated_alike()
    derived.decorated_plainly()
    derived.call_private()
    derived.replaced()
    Base.Nested.Deeper().innermost()
    renamed()
    shared()
    enclosing()
    Cycle().around()
    hidden_rows[0]().convert()


print("ready " + json.dumps(None), flush=True)
while True:
    run()
