#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that each folder of user/ includes only from the folders before it: a part of `make lint`.

ROOMS gives their order.  tests/docs.py copies it into docs/internals.md.
"""

import pathlib
import re
import sys

ROOMS = {
    "base": "what every folder uses: memory, messages, hash tables, exit statuses",
    "architecture": "the differences between x86-64 and aarch64",
    "system": "this machine and the profiler's rights on it: CPUs, users, capabilities, limits",
    "reading": "reads another process, its memory and its files, with a time limit",
    "elf": "the ELF files that a process maps: symbols, segments, build IDs; each file once",
    "processes": "lists processes, tells who owns them, applies the filters",
    "python": "CPython's structures in memory: interpreters, objects, code, line tables",
    "profile": "the result and its ledger; recordings fill it, outputs read it",
    "unwind": "native code: unwind rows and symbols of mapped files, perf maps, symbols of the kernel",
    "events": "what can be sampled: a file for each kind of event, and their table",
    "sampling": "loads the BPF program, tells it what to sample, takes its records and counts",
    "naming": "symbolizes: turns counted stacks into functions, lines and thread names",
    "watch": "finds the processes to profile, and follows their forks, execs and exits",
    "output": "writes a profile in each format, complete or not at all",
    "recording": "one recording from start to end, with its rate and its privileges",
    "services": "groups samples by service, and applies the rules that change labels",
    "http": "URLs, the HTTP server and its status page",
    "store": "the agent's database",
    "push": "sends windows to backends",
    "kubernetes": "asks the API server for the node's pods",
    "options": "every option: command line, environment, configuration file, `--help`",
    "agent": "records continuously, and hands each window to the store and the backends",
    "check": "checks what works on this machine",
    ".": "the program: `main.c`, and `cmd_NAME.c` for each verb",
}
ORDER = list(ROOMS)
TOP = pathlib.Path(__file__).resolve().parent.parent
USER = TOP / "user"


def room_of(path):
    return path.parts[0] if len(path.parts) > 1 else "."


def wrong(source, included):
    """The problem with SOURCE's include of INCLUDED, or None."""
    room, path = room_of(source.relative_to(USER)), pathlib.PurePosixPath(included)
    if ".." in path.parts or not (USER / path).is_file():
        return "say its folder" if (source.parent / path).is_file() else None
    if room not in ROOMS or room_of(path) not in ROOMS:
        return "a folder that is not in tests/rooms.py"
    if ORDER.index(room_of(path)) > ORDER.index(room):
        return f"{room}/ knows nothing of it"
    return None


def main():
    """The problems, one per line; 0 if there are none."""
    found = [f"{source.relative_to(TOP)}:{number}: {include[1]}: {problem}"
             for source in sorted(USER.rglob("*.[ch]"))
             for number, line in enumerate(source.read_text().split("\n"), 1)
             if (include := re.match(r'\s*#\s*include\s*["<]([^">]+)', line))
             and (problem := wrong(source, include[1]))]
    return "\n".join(found) or 0


if __name__ == "__main__":
    sys.exit(main())
