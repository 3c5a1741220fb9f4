# SPDX-License-Identifier: BSD-2-Clause
"""The functions of names.py that 2.7 cannot compile."""


def functions(spin):
    """All of the functions, as callables."""
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
