# SPDX-License-Identifier: BSD-2-Clause
"""The part of native_chain.py that needs Python 3."""

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
