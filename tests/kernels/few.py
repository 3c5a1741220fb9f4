# SPDX-License-Identifier: BSD-2-Clause
"""As own.py, but only what `make test` needs: two Pythons, the oldest and the newest."""

import own
from own import ARCHITECTURE, OUTPUT, add_agent, add_libraries, add_python  # noqa: F401

TOOLS = ("busybox",)
BUILT = ()


def pythons():
    found = own.pythons()
    return found[:1] + found[1:][-1:]


def missing():
    return own.missing(TOOLS)


def tools():
    return own.tools(TOOLS)
