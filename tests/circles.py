#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that no modules of user/ depend on each other in a cycle: a part of `make lint`.

A module is an object file of the build.  It depends on another one if it uses a symbol that is defined there.
"""

import os
import pathlib
import subprocess
import sys


SOURCES = pathlib.Path(__file__).resolve().parent.parent / "user"


def symbols_of(folder):
    """{module: (defined symbols, used symbols)} of the objects below FOLDER."""
    # Objects of deleted sources may remain.
    objects = [path for path in sorted(folder.rglob("*.o"))
               if path.name.endswith(".pb-c.o") or (SOURCES / path.relative_to(folder).with_suffix(".c")).exists()]
    listed = subprocess.run(["nm", "-A", "-g", *objects], check=True, stdout=subprocess.PIPE,
                            universal_newlines=True).stdout
    modules = {}
    for line in listed.splitlines():
        path, rest = line.split(":", 1)
        kind, name = rest.split()[-2:]
        defined, used = modules.setdefault(str(pathlib.Path(path).relative_to(folder).with_suffix("")), (set(), set()))
        (used if kind in "Uw" else defined).add(name)
    return modules


def needs(modules):
    """{module: modules that it depends on}."""
    home = {name: module for module, (defined, _) in modules.items() for name in defined}
    return {module: {home[name] for name in used if name in home} - {module}
            for module, (_, used) in modules.items()}


def circles(needed):
    """The sets of modules that depend on each other, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(module):
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in needed[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            at = stack.index(module)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for module in sorted(needed):
        if module not in index:
            visit(module)
    return found


def main():
    """The problems, one per line; 0 if there are none."""
    needed = needs(symbols_of(pathlib.Path(os.environ.get("OUTPUT", ".output")) / "user"))
    assert len(needed) > 100, "the objects are not built"
    return "\n".join("these need each other: " + ", ".join(circle) for circle in circles(needed)) or 0


if __name__ == "__main__":
    sys.exit(main())
