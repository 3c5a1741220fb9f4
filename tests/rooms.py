#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whether each folder of user/ knows those alone that are before it: a part of `make lint`.

ROOMS is their order, and what README.md and CONTRIBUTING.md say of them.
"""

import pathlib
import re
import sys

ROOMS = {
    "base": "what every part needs: memory, messages, hash tables, exit statuses",
    "architecture": "what differs between x86-64 and aarch64",
    "system": "this machine, and what the profiler may do on it: CPUs, users, capabilities, limits",
    "target": "how another process is read, its memory and its files, without waiting for ever",
    "processes": "which processes there are, whose they are, which of them are wanted",
    "python": "what CPython keeps in memory: interpreters, objects, code, line tables",
    "profile": "the result with its ledger, which recordings fill and outputs read",
    "sampling": "the kernel side: loads it, tells it what to sample, drains what it counted",
    "naming": "from what was counted to functions, lines and names of threads",
    "watch": "finds the processes to profile, and follows what becomes of them",
    "output": "writes a profile, in each format, whole or not at all",
    "options": "the command line's options",
    "recording": "one recording from start to end, with the rate and the privileges that it takes",
    "services": "whose a window's samples are, and the rules that change labels",
    "http": "URLs, the server, and the page that it shows",
    "store": "the agent's database",
    "push": "sends windows to backends",
    "kubernetes": "asks which pods there are",
    "agent": "records for ever, and gives each window to the store and to backends",
    "check": "tells what of this machine works, and what does not",
    ".": "the program: `main.c`, and `cmd_NAME.c` for each verb",
}
ORDER = list(ROOMS)
TOP = pathlib.Path(__file__).resolve().parent.parent
USER = TOP / "user"


def room_of(path):
    return path.parts[0] if len(path.parts) > 1 else "."


def wrong(source, included):
    """What is wrong with SOURCE's include of INCLUDED, or None."""
    room, path = room_of(source.relative_to(USER)), pathlib.PurePosixPath(included)
    if ".." in path.parts or not (USER / path).is_file():
        return "say its folder" if (source.parent / path).is_file() else None
    if room not in ROOMS or room_of(path) not in ROOMS:
        return "a folder that is not in tests/rooms.py"
    if ORDER.index(room_of(path)) > ORDER.index(room):
        return f"{room}/ knows nothing of it"
    return None


found = [f"{source.relative_to(TOP)}:{number}: {include[1]}: {problem}"
         for source in sorted(USER.rglob("*.[ch]"))
         for number, line in enumerate(source.read_text().split("\n"), 1)
         if (include := re.match(r'\s*#\s*include\s*["<]([^">]+)', line))
         and (problem := wrong(source, include[1]))]
rooms = "".join(f"- `{pathlib.Path('user') / room}/`: {what}\n" for room, what in ROOMS.items())
found += [f"{name}: not the folders that tests/rooms.py has:\n{rooms}"
          for name in ("README.md", "CONTRIBUTING.md") if rooms not in (TOP / name).read_text()]
sys.exit("\n".join(found) or 0)
