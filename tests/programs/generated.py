# SPDX-License-Identifier: BSD-2-Clause
"""generated.py: runs methods generated at run time, in two classes of each kind.

  Order, Outer.Invoice   __init__ and __eq__ by dataclass, from 3.7 on
  Point, Size            __new__ by namedtuple
  Made, Other            spin by exec, and in Made a wrapped __repr__
"""

import functools
import sys
from collections import namedtuple

SPIN = "def spin(self, count):\n    for _ in range(count):\n        pass\n"
COUNT = 3000

Point = namedtuple("Point", "a b c d e f")
Size = namedtuple("Size", "a b c d e f")


class Made:
    pass


class Other:
    pass


def make(source, name):
    names = {}
    exec(source, names)
    return names[name]


def wrap(function):
    @functools.wraps(function)
    def wrapper(self):
        return function(self, COUNT) or ""
    return wrapper


def make_classes():
    for made in (Made, Other):
        made.spin = make(SPIN, "spin")
    Made.__repr__ = wrap(make(SPIN.replace("spin", "__repr__"), "__repr__"))


def run_dataclasses():
    for kind in (Order, Outer.Invoice):
        one = kind(1, 2, 3, 4, 5, 6)
        for _ in range(1000):
            kind(1, 2, 3, 4, 5, 6)
            one == one  # noqa: B015


make_classes()
if sys.version_info >= (3, 7):
    from dataclasses import dataclass

    FIELDS = {"__annotations__": dict.fromkeys("abcdef", int)}
    Order = dataclass(type("Order", (), dict(FIELDS)))

    class Outer:
        Invoice = dataclass(type("Invoice", (), dict(FIELDS, __qualname__="Outer.Invoice")))
else:
    def run_dataclasses():
        pass

print("ready")
sys.stdout.flush()
while True:
    run_dataclasses()
    for _ in range(1000):
        Point(1, 2, 3, 4, 5, 6)
        Size(1, 2, 3, 4, 5, 6)
    for made in (Made(), Other()):
        made.spin(COUNT)
    repr(Made())
