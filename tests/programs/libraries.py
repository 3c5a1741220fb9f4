# SPDX-License-Identifier: BSD-2-Clause
"""libraries.py SECONDS: imports and uses modules of the standard library for SECONDS.

It imports them repeatedly, so that their top-level lines and the import system's run as well.
"""

import sys

from portable import thread_time

MODULES = ("argparse", "ast", "bdb", "calendar", "codeop", "csv", "difflib", "fnmatch",
           "fractions", "getopt", "gettext", "json", "locale", "mimetypes", "numbers",
           "optparse", "pickle", "pprint", "shlex", "string", "tarfile", "textwrap", "tokenize",
           "traceback", "zipfile")


def forget(kept):
    """Drops all modules but those KEPT, so that they are imported again."""
    for name in set(sys.modules) - kept:
        del sys.modules[name]


def import_all():
    for name in MODULES:
        __import__(name)


def work():
    """Runs pure Python: recursion, generators, classes, exceptions, comprehensions."""
    ast, difflib, fractions, json, optparse, pprint, shlex, textwrap, tokenize = (
        sys.modules[name] for name in ("ast", "difflib", "fractions", "json", "optparse", "pprint",
                                       "shlex", "textwrap", "tokenize"))
    with open(__file__) as file:
        lines = file.read().splitlines(True)
    list(difflib.unified_diff(lines, lines[::-1]))
    list(tokenize.generate_tokens(iter(lines + [""]).__next__ if sys.version_info >= (3,)
                                  else iter(lines + [""]).next))
    list(ast.walk(ast.parse("".join(lines))))
    json.dumps({"lines": lines, "more": [{"a": 1.5, "b": None}] * 20}, indent=1)
    pprint.pformat([lines, {"nested": [lines] * 3}])
    shlex.split("a 'b c' \"d e\" f\\ g " * 20)
    textwrap.wrap(" ".join(lines), 40)
    sum(fractions.Fraction(1, number) for number in range(1, 60))
    parser = optparse.OptionParser()
    parser.add_option("-a", "--all", type="int")
    parser.parse_args(["-a", "1", "--all=2", "rest"])


def main():
    kept = set(sys.modules)
    end = thread_time() + float(sys.argv[1])
    while thread_time() < end:
        import_all()
        work()
        work()
        forget(kept)


main()
