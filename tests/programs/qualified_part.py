# SPDX-License-Identifier: BSD-2-Clause
"""qualified_part.py: what qualified_later.py imports."""


class Part(object):
    def method(self, function):
        function()
