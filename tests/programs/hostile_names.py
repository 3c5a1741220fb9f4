# SPDX-License-Identifier: BSD-2-Clause
"""The names of hostile.py's functions and of their file."""

from __future__ import unicode_literals

NAMES = (
    "</script><b onload=x>",
    'quo"te\\back',
    "semi;colon",
    "line\nbreak\r",
    "ends in 123",
    "<!--",
    "]]>{{x}}",
    "nul\0byte",
    "lone\udcffsurrogate",
    "\u202eright-to-left\u2028",
    "&lt;",
    "",
)
FILE = "/tmp/a;b\n\"c'</script><b onload=y> \udcff/d e.py"


def shown(name, version=(3,)):
    """NAME as the profiler shows it in UTF-8. In 2.7 the names of hostile.py are bytes."""
    text = name.replace("\0", "\\x00")
    if version < (3,):
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def plain(name, version=(3,)):
    """NAME with the characters escaped that a terminal cannot show safely."""
    return "".join("\\x%02x" % ord(char) if ord(char) < 32 else
                   "\\u%04x" % ord(char) if char in "\u202e\u2028" else char
                   for char in shown(name, version))
