# SPDX-License-Identifier: BSD-2-Clause
"""suspending.py for 2.7, which has neither `yield from` nor coroutines: the same frames."""


def delegate(generator):
    for value in generator:
        yield value


def wait(function, name):
    function(name)


def await_it(function, name):
    yield wait(function, name)
