# SPDX-License-Identifier: BSD-2-Clause
"""delegating.py: generators and coroutines that pass an exception on to the one that they wait for.

Generators run below `throw`, coroutines below `outer`. Each waits for the one defined above it.
"""

import asyncio
import sys

SOME = range(3000)


def work():
    return sum(SOME)


class Iterator:
    """An iterator with a throw() in C."""

    throw = staticmethod(sum)

    def __iter__(self):
        return self

    def __next__(self):
        return 1


def inner_generator():
    yield from Iterator()


def outer_generator():
    yield from inner_generator()


def throw():
    generator = outer_generator()
    next(generator)
    try:
        generator.throw(SOME)
    except TypeError:
        pass


async def wait():
    try:
        await asyncio.sleep(10)
    finally:
        work()


async def middle():
    await wait()


async def outer():
    try:
        await middle()
    except asyncio.CancelledError:
        work()
        raise


async def main():
    print("ready")
    sys.stdout.flush()
    while True:
        throw()
        task = asyncio.ensure_future(outer())
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass


asyncio.new_event_loop().run_until_complete(main())
