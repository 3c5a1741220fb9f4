# SPDX-License-Identifier: BSD-2-Clause
"""qualified_part.py: the module that qualified_later.py and qualified_2_7.py import."""


class Part(object):
    def method(self, function):
        function()


class OldPart:
    def old_method(self, function):
        function()
