# SPDX-License-Identifier: BSD-2-Clause
"""code_objects.py for 2.7, whose names are bytes, valid UTF-8 or not."""

import json
import sys
import types

from portable import renamed, version_and_build

# (name in the code object, name as it should be read)
NAMES = [
    ("plain", u"plain"),
    ("with space; \"quotes\" </script>\n\ttab\r", u"with space; \"quotes\" </script>\n\ttab\r"),
    ("", u""),
    ("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x8d", u"caf\u00e9 \u20ac \U0001f40d"),
    ("caf\xe9", u"caf\\xe9"),
    ("half \xe2\x82", u"half \\xe2\\x82"),
    ("nul \0 inside", u"nul \\x00 inside"),
    ("long \xc3\xa9" * 20000, u"long \u00e9" * 20000),
]

FILENAMES = [("plain.py", u"plain.py"), ("/srv/\xcf\x80.py", u"/srv/\u03c0.py"),
             ("/srv/\xff.py", u"/srv/\\xff.py")]

class Bytes(str):
    """A subclass of str."""


def original():
    total = 0
    for number in range(10):

        total += number
    return total


def describe(code, name=None, filename=None):
    return {
        "address": id(code),
        "name": name or code.co_name.decode("ascii"),
        "filename": filename or code.co_filename.decode("ascii"),
        "first_line": code.co_firstlineno,
        "table": code.co_lnotab.encode("hex"),
    }


def main():
    keep = [original.__code__, main.__code__, compile("x = 1\n\n\ny = 2", "<module>", "exec")]
    codes = [describe(code) for code in keep]
    for index, (name, spelled) in enumerate(NAMES):
        filename, filename_spelled = FILENAMES[index % len(FILENAMES)]
        keep.append(renamed(original.__code__, name, filename, index * 1000000))
        codes.append(dict(describe(original.__code__, spelled, filename_spelled),
                          address=id(keep[-1]), first_line=index * 1000000, name=spelled))
    other = u"caf\u00e9"
    strings = [(make(text), spelled) for make in (str, Bytes) for text, spelled in NAMES]
    told = {
        "version": version_and_build(),
        "type": id(types.CodeType),
        "codes": codes,
        "strings": [{"address": id(string), "text": spelled} for string, spelled in strings],
        "no_strings": [id(None), id(original), id(7), id(other)],
        "no_code": [id(original), id(codes), id(types.CodeType), id(None), id("plain")],
    }
    print("ready " + json.dumps(told))
    sys.stdin.readline()


main()
