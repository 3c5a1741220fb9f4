# SPDX-License-Identifier: BSD-2-Clause
"""kinds.py: every kind of Python function, and every way from C into Python.

tests/e2e/legal.py reads the marks `calls:` and `called:`.
"""

import ctypes
import functools
import gc
import importlib.abc
import importlib.util
import os
import re
import signal
import sys
import weakref

SOME = (1, 2, 3)


def leaf():
    return sum(range(60))


# Generators and coroutines.

def produce():
    try:
        for _ in SOME:
            yield leaf()  # calls: leaf
    finally:
        leaf()  # calls: leaf


def delegate():
    yield from produce()  # calls: produce


def iterate():
    # From 3.11 on, a generator function runs until it creates its generator.
    for _ in delegate():  # calls: delegate
        pass
    closed = produce()  # calls: produce (>=3.11)
    next(closed)  # calls: produce
    closed.close()  # calls: produce
    thrown = produce()  # calls: produce (>=3.11)
    next(thrown)  # calls: produce
    try:
        thrown.throw(KeyError)  # calls: produce
    except KeyError:
        leaf()  # calls: leaf


async def give():
    return leaf()  # calls: leaf


async def wait():
    return await give()  # calls: give


async def produce_later():
    for _ in SOME:
        yield await wait()  # calls: wait


class Context:
    async def __aenter__(self):
        await wait()  # calls: wait

    async def __aexit__(self, *_):
        await wait()  # calls: wait


async def consume():
    async for _ in produce_later():  # calls: produce_later
        leaf()  # calls: leaf
    async with Context():  # calls: __aenter__, __aexit__
        leaf()  # calls: leaf, __aexit__ (<3.10)
    await comprehend_later()  # calls: comprehend_later


async def comprehend_later():
    it = produce_later()  # calls: produce_later (>=3.11)
    return [i async for i in it]  # calls: <listcomp> (<3.12), produce_later (by <listcomp>, >=3.12)


def drive():
    coroutine = consume()  # calls: consume (>=3.11)
    try:
        coroutine.send(None)  # calls: consume
    except StopIteration:
        leaf()  # calls: leaf


# Expressions that are functions, or were in older versions.

def comprehend():
    found = [leaf() for _ in SOME]  # calls: <listcomp> (<3.12), leaf (by <listcomp>, >=3.12)
    found += {leaf() for _ in SOME}  # calls: <setcomp> (<3.12), leaf (by <setcomp>, >=3.12)
    found += {leaf(): 1 for _ in SOME}  # calls: <dictcomp> (<3.12), leaf (by <dictcomp>, >=3.12)
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


# Class bodies, and methods that classes call implicitly.

class Meta(type):
    def __new__(cls, name, bases, scope):
        leaf()  # calls: leaf
        return super().__new__(cls, name, bases, scope)  # calls: __set_name__


class Described:
    def __set_name__(self, owner, name):
        leaf()  # calls: leaf

    def __get__(self, instance, owner):
        return leaf()  # calls: leaf


def define():
    class Body(metaclass=Meta):  # calls: Body, __new__
        value = leaf()  # calls: leaf
        described = Described()
    return Body().described  # calls: __get__


class Special:
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


class Missing(dict):
    def __missing__(self, key):
        return leaf()  # calls: leaf


def special():
    one = Special(1)  # calls: __init__
    two = Special(2)  # calls: __init__
    {one, two}  # calls: __hash__, __eq__
    sorted((one, two))  # calls: __lt__
    one.absent  # calls: __getattr__
    one + two  # calls: __add__
    1 in one  # calls: __contains__
    one[0]  # calls: __getitem__
    with one:  # calls: __enter__, __exit__
        leaf()  # calls: leaf, __exit__ (<3.10)
    one()  # calls: __call__
    Missing()[1]  # calls: __missing__


# Code compiled at run time.

def make_code(kind, line):
    return compile("\n" * (line - 1) + "leaf()", "kinds.py", kind)


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
    list(map(key, SOME))  # calls: key
    list(filter(key, SOME))  # calls: key
    max(SOME, key=key)  # calls: key
    functools.reduce(combine, SOME)  # calls: combine
    sorted(SOME, key=functools.cmp_to_key(combine))  # calls: combine
    LETTER.sub(replace, "aaa")  # calls: replace
    SORT(ARRAY, 4, 4, compare)  # calls: compare


# Functions that run without a visible call.

class Ending:
    def __del__(self):
        leaf()  # calls: leaf


def watch(reference):
    leaf()  # calls: leaf


def end():
    ending = Ending()
    del ending  # calls: __del__
    cycle = Ending()
    cycle.itself = cycle
    del cycle
    gc.collect(0)  # calls: __del__
    watched = Ending()
    watcher = weakref.ref(watched, watch)
    del watched  # calls: watch, __del__
    return watcher


def handle(number, frame):  # called: anywhere
    leaf()  # calls: leaf


# Import.

class Loader(importlib.abc.Loader):
    def create_module(self, spec):  # called: library
        return None

    def exec_module(self, module):  # called: library
        exec(EXECUTED, {"leaf": leaf})  # calls: <module>


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):  # called: library
        if name == "made_up":
            leaf()  # calls: leaf
            return importlib.util.spec_from_loader(name, Loader())  # calls: library
        return None


def import_it():
    import made_up  # calls: library
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
        drive()  # calls: drive
        comprehend()  # calls: comprehend
        anonymous()  # calls: anonymous
        wrapped()  # calls: wrapped
        define()  # calls: define
        special()  # calls: special
        execute()  # calls: execute
        call_back()  # calls: call_back
        end()  # calls: end
        import_it()  # calls: import_it


main()  # calls: main
