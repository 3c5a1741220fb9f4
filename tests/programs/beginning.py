# SPDX-License-Identifier: BSD-2-Clause
"""beginning.py WAY...: spends its time on the first and last instructions of calls from C, of generators,
and of calls with keywords. It runs the WAYs in turn."""

import sys

NUMBERS = list(range(500))


def key(number):
    return -number


def sort():
    sorted(NUMBERS, key=key)


class Made:
    def __init__(self):
        pass

    def __del__(self):
        pass

    def __enter__(self):
        pass

    def __exit__(self, *exception):
        pass


def make():
    for _ in NUMBERS:
        Made()


def enter():
    made = Made()
    for _ in NUMBERS:
        with made:
            pass


def numbers():
    for number in NUMBERS:
        yield number


def evens(source):
    for number in source:
        if number % 2 == 0:
            yield number


def squares(source):
    for number in source:
        yield number * number


def pipe():
    sum(squares(evens(numbers())))


def consume(source):
    for number in source:
        if number % 10 == 0:
            skip(source)


def skip(source):
    for number in source:
        if number % 5 == 0:
            return


def share():
    consume(numbers())


def brief(x=0, *, z=1):
    pass


def other(x=0, *, z=1):
    pass


def turns():
    for number in NUMBERS:
        other(z=2)
        yield number


def keywords():
    for _ in turns():
        brief(z=2)


def inner():
    for number in NUMBERS:
        brief(z=2)
        yield number


def outer():
    for number in inner():
        other(z=2)
        yield number


def nested():
    for _ in outer():
        pass


async def awaited():
    brief(z=2)


async def awaiting():
    other(z=2)
    await awaited()


def coroutines():
    for _ in NUMBERS:
        try:
            awaiting().send(None)
        except StopIteration:
            pass


ways = [globals()[name] for name in sys.argv[1:]]
print("ready", flush=True)
while True:
    for way in ways:
        way()
