# SPDX-License-Identifier: BSD-2-Clause
"""Generators and coroutines between a caller and a callee."""


def delegate(generator):
    yield from generator


async def wait(function, name):
    function(name)


async def await_it(function, name):
    await wait(function, name)
