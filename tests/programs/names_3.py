# SPDX-License-Identifier: BSD-2-Clause
"""names.py's functions that 2.7 cannot spell."""


def functions(spin):
    """Each of them, ready to be called."""
    async def coroutine():
        spin()

    def drive():
        try:
            coroutine().send(None)
        except StopIteration:
            pass

    def café():
        spin()

    def функция():
        spin()

    def 関数():
        spin()

    def 𐌰𐌱():
        spin()

    class Größe:
        def 測る(self):
            spin()

    return [drive, café, функция, 関数, 𐌰𐌱, Größe().測る]
