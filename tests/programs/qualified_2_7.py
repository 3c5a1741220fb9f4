# SPDX-License-Identifier: BSD-2-Clause
"""qualified.py for 2.7: functions in classes of both kinds, each with the same share of the CPU."""

import functools

import qualified_part
from portable import thread_time
from qualified_part import Part

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


class Old:
    def of_old(self):
        spin()

    @staticmethod
    def static_of_old():
        spin()

    @classmethod
    def class_of_old(cls):
        spin()

    @wrapping
    def decorated_of_old(self):
        spin()

    def __old_private(self):
        spin()

    def call_private(self):
        self.__old_private()

    class Nested:
        def within_old(self):
            spin()


class OldDerived(Old):
    pass


def replacement(self):
    spin()


Base.replaced = replacement
Alias = Base
OldAlias = Old
inherited = Base.inherited


class Kind(type):
    def of_kind(cls):
        spin()


class OfKind(object):
    __metaclass__ = Kind

    def has_kind(self):
        spin()


class Cycle(object):
    def around(self):
        spin()


Cycle.itself = Cycle
Cycle.wrapped = staticmethod(Cycle)
Cycle.around.__func__.__wrapped_by__ = Cycle


# Functions with two possible qualified names get neither.

class Container(object):
    class Twice(object):
        def of_two(self):
            spin()

    class OldTwice:
        def of_two_old(self):
            spin()


Twice = Container.Twice
OldTwice = Container.OldTwice


class Lender(object):
    def lent(self):
        spin()

    @staticmethod
    def lent_wrapped():
        spin()


class Borrower(object):
    lent = Lender.__dict__["lent"]
    lent_wrapped = Lender.__dict__["lent_wrapped"]


# Nor do functions whose class claims another module or name, or whose globals or names do not match.

class Stranger(object):
    def of_stranger(self):
        spin()


Stranger.__module__ = "elsewhere"


class Misnamed(object):
    def of_misnamed(self):
        spin()


Misnamed.__name__ = "Other"


def renamed():
    spin()


renamed.__name__ = "another"
Lender.another = renamed
foreign = type(spin)(compile("def foreign(spin):\n    spin()", __file__, "exec").co_consts[0],
                     {"__name__": __name__})
Lender.foreign = foreign
del foreign


def make_row(name):
    """A class made by a factory: its method shares its code object with those of the others."""
    def convert(self):
        spin()
    return type(name, (object,), {"convert": convert})


Row = make_row("Row")


def enclosing():
    def within():
        spin()

    class Local(object):
        def of_local(self):
            spin()

    within()
    Local().of_local()


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
    derived.call_private()
    derived.replaced()
    Base.Nested.Deeper().innermost()
    old = OldDerived()
    old.of_old()
    old.static_of_old()
    old.class_of_old()
    old.decorated_of_old()
    old.call_private()
    Old.Nested().within_old()
    OfKind.of_kind()
    OfKind().has_kind()
    Cycle().around()
    Twice().of_two()
    OldTwice().of_two_old()
    Borrower().lent()
    Lender.lent_wrapped()
    Stranger().of_stranger()
    Misnamed().of_misnamed()
    renamed()
    Lender.__dict__["foreign"](spin)
    Row().convert()
    enclosing()
    Part().method(spin)
    qualified_part.OldPart().old_method(spin)


print("ready")
while True:
    run()
