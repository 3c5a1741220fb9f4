# SPDX-License-Identifier: BSD-2-Clause
"""Holds code objects and strings of every form, prints their addresses, and waits.

Prints "ready" and, as JSON, the address of the code type, and of each object its address and the expected
contents.
"""

import json
import sys
import types

from portable import renamed, version_and_build

NAMES = [
    "plain",
    "with space; \"quotes\" 'and' \\ </script>\n\ttab\r",
    "",
    "caf\u00e9",
    "\u00ff" * 300,
    "\u03c0\u03b1\u20ac",
    "\uffff\ud7ff\ue000",
    "\U0001f40d and \U0010ffff",
    "not utf-8: \udce9\udc80",
    "\ud83d\ude00 is two surrogates, \U0001f600 is not",
    "nul \0 inside",
    "long " * 20000,
    "long \u20ac" * 20000,
]

FILENAMES = ["plain.py", "/srv/caf\u00e9/\u03c0.py", "/srv/\U0001f40d.py", "/srv/\udcff.py"]


class Text(str):
    """A str subclass, whose characters are outside the object."""


def original():
    total = 0
    for number in range(10):

        total += number
    return total


def spelled(text):
    """TEXT as it should be read: characters that UTF-8 cannot encode, and NUL, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


def describe(code):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    return {
        "address": id(code),
        "name": spelled(getattr(code, "co_qualname", code.co_name)),
        "filename": spelled(code.co_filename),
        "first_line": code.co_firstlineno,
        "table": table.hex(),
    }


def main():
    codes = [original.__code__, main.__code__, compile("x = 1\n\n\ny = 2", "<module>", "exec")]
    codes += [renamed(original.__code__, name, FILENAMES[index % len(FILENAMES)], index * 1000000)
              for index, name in enumerate(NAMES)]
    strings = NAMES + [Text(name) for name in NAMES]
    told = {
        "version": version_and_build(),
        "type": id(types.CodeType),
        "codes": [describe(code) for code in codes],
        "strings": [{"address": id(string), "text": spelled(string)} for string in strings],
        "no_code": [id(original), id(codes), id(types.CodeType), id(...), id("plain")],
    }
    print("ready " + json.dumps(told))
    sys.stdin.readline()


main()
