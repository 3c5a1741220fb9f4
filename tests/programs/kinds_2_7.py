# SPDX-License-Identifier: BSD-2-Clause
"""kinds.py for 2.7: every kind of Python function, and every way from C into Python.

tests/e2e/legal.py reads the marks `calls:` and `called:`.
"""

import ctypes
import functools
import gc
import imp
import os
import re
import signal
import sys
import weakref

SOME = (1, 2, 3)


def leaf():
    return sum(range(60))


# Generators.

def produce():
    try:
        for _ in SOME:
            yield leaf()  # calls: leaf
    finally:
        leaf()  # calls: leaf


def delegate():
    for value in produce():  # calls: produce
        yield value


def iterate():
    for _ in delegate():  # calls: delegate
        pass
    closed = produce()
    next(closed)  # calls: produce
    closed.close()  # calls: produce
    thrown = produce()
    next(thrown)  # calls: produce
    try:
        thrown.throw(KeyError)  # calls: produce
    except KeyError:
        leaf()  # calls: leaf


# Expressions that are functions. In 2.7 list comprehensions are not.

def comprehend():
    found = [leaf() for _ in SOME]  # calls: leaf
    found += {leaf() for _ in SOME}  # calls: <setcomp>, leaf (by <setcomp>)
    found += {leaf(): 1 for _ in SOME}  # calls: <dictcomp>, leaf (by <dictcomp>)
    return found + list(leaf() for _ in SOME)  # calls: <genexpr>, leaf (by <genexpr>)


def anonymous():
    return (lambda: leaf())()  # calls: <lambda>, leaf (by <lambda>)


# Wrappers.

def decorate(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)  # calls: decorated, decorated_method
    return wrapper


@decorate
def decorated():
    leaf()  # calls: leaf


class Decorated:
    @decorate
    def decorated_method(self):
        leaf()  # calls: leaf


def wrapped():
    decorated()  # calls: wrapper
    Decorated().decorated_method()  # calls: wrapper
    functools.partial(leaf)()  # calls: leaf
    functools.partial(functools.partial(with_arguments, 1), last=2)()  # calls: with_arguments


def with_arguments(first, last):
    return leaf() + first + last  # calls: leaf


# Class bodies, and methods that classes of both kinds call implicitly.

class Meta(type):
    def __new__(cls, name, bases, scope):
        leaf()  # calls: leaf
        return type.__new__(cls, name, bases, scope)


class Described(object):
    def __get__(self, instance, owner):
        return leaf()  # calls: leaf


def define():
    class Body(object):  # calls: Body, __new__
        __metaclass__ = Meta
        value = leaf()  # calls: leaf
        described = Described()
    return Body().described  # calls: __get__


class Old:
    def __init__(self, value):
        self.value = value
        leaf()  # calls: leaf

    def __hash__(self):
        return leaf()  # calls: leaf

    def __eq__(self, other):
        return leaf() == 0  # calls: leaf

    def __lt__(self, other):
        return leaf() > 0  # calls: leaf

    def __getattr__(self, name):
        if name != "absent":
            raise AttributeError(name)
        return leaf()  # calls: leaf

    def __add__(self, other):
        return leaf()  # calls: leaf

    def __contains__(self, item):
        return leaf() == item  # calls: leaf

    def __getitem__(self, index):
        return leaf()  # calls: leaf

    def __enter__(self):
        leaf()  # calls: leaf

    def __exit__(self, *_):
        leaf()  # calls: leaf

    def __call__(self):
        leaf()  # calls: leaf


class New(Old, object):
    pass


class Missing(dict):
    def __missing__(self, key):
        return leaf()  # calls: leaf


def special(kind):
    one = kind(1)  # calls: __init__, __getattr__
    two = kind(2)  # calls: __init__, __getattr__
    {one, two}  # calls: __hash__, __eq__, __getattr__
    sorted((one, two))  # calls: __lt__, __getattr__
    one.absent  # calls: __getattr__
    one + two  # calls: __add__, __getattr__
    1 in one  # calls: __contains__, __getattr__
    one[0]  # calls: __getitem__, __getattr__
    with one:  # calls: __enter__, __exit__, __getattr__
        leaf()  # calls: leaf, __exit__
    one()  # calls: __call__, __getattr__
    Missing()[1]  # calls: __missing__


# Code compiled at run time.

def make_code(kind, line):
    return compile("\n" * (line - 1) + "leaf()", "kinds_2_7.py", kind)


EXECUTED = make_code("exec", sys._getframe().f_lineno)  # calls: leaf
EVALUATED = make_code("eval", sys._getframe().f_lineno)  # calls: leaf


def execute():
    exec(EXECUTED)  # calls: <module>
    eval(EVALUATED)  # calls: <module>


# Calls from C.

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(first, second):
    return leaf() * 0  # calls: leaf


ARRAY = (ctypes.c_int * 4)(3, 1, 4, 2)
SORT = ctypes.CDLL(None).qsort


def key(item):
    return leaf() - item  # calls: leaf


def combine(first, second):
    return leaf()  # calls: leaf


def replace(match):
    leaf()  # calls: leaf
    return "b"


LETTER = re.compile("a")


def call_back():
    sorted(SOME, key=key)  # calls: key
    map(key, SOME)  # calls: key
    filter(key, SOME)  # calls: key
    max(SOME, key=key)  # calls: key
    reduce(combine, SOME)  # noqa: F821  # calls: combine
    sorted(SOME, combine)  # calls: combine
    apply(combine, (1, 2))  # noqa: F821  # calls: combine
    LETTER.sub(replace, "aaa")  # calls: replace
    SORT(ARRAY, 4, 4, compare)  # calls: compare


# Functions that run without a visible call.

class Ending(object):
    def __del__(self):
        leaf()  # calls: leaf


def watch(reference):
    leaf()  # calls: leaf


def end():
    ending = Ending()
    del ending  # calls: __del__
    watched = Ending()
    watcher = weakref.ref(watched, watch)
    del watched  # calls: watch, __del__
    return watcher


def handle(number, frame):  # called: anywhere
    leaf()  # calls: leaf


# Import.

class Finder(object):
    def find_module(self, name, path=None):
        if name == "made_up":
            leaf()  # calls: leaf
            return self
        return None

    def load_module(self, name):
        module = sys.modules[name] = imp.new_module(name)
        exec(EXECUTED, {"leaf": leaf})  # calls: <module>
        return module


def import_it():
    import made_up  # calls: find_module, load_module
    del sys.modules["made_up"]
    return made_up


def main():
    gc.disable()
    sys.meta_path.insert(0, Finder())
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
    print("ready")
    parent = os.getppid()
    while os.getppid() == parent:
        iterate()  # calls: iterate
        comprehend()  # calls: comprehend
        anonymous()  # calls: anonymous
        wrapped()  # calls: wrapped
        define()  # calls: define
        special(Old)  # calls: special
        special(New)  # calls: special
        execute()  # calls: execute
        call_back()  # calls: call_back
        end()  # calls: end
        import_it()  # calls: import_it


main()  # calls: main
