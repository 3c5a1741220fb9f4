# SPDX-License-Identifier: BSD-2-Clause
"""What native_chain.py has of Python 3 alone."""

import asyncio

loop = asyncio.new_event_loop()


def tasks(chain):
    loop.run_until_complete(outer_task(chain))


async def outer_task(chain):
    await inner_task(chain)


async def inner_task(chain):
    def innermost():
        chain.chain_spin()
    chain.chain_enter(innermost)
