#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the root holds only known files: a part of `make lint`."""

import pathlib
import subprocess
import sys

KNOWN = set(""".ci .clang-format .dockerignore .editorconfig .gitignore CHANGELOG.md CONTRIBUTING.md
LICENSE Makefile README.md SECURITY.md bpf deploy docs offsets tests user vmlinux""".split())
TOP = pathlib.Path(__file__).resolve().parent.parent

# A source archive has no .git, and no untracked files to find.
if not (TOP / ".git").exists():
    sys.exit(0)
# With sudo, the checkout belongs to another user, and git would refuse to read it.
listed = subprocess.run(["git", "-c", "safe.directory=" + str(TOP), "ls-files", "-z", "--cached", "--others",
                         "--exclude-standard"], cwd=TOP, check=True, stdout=subprocess.PIPE)
there = {path.split("/")[0] for path in listed.stdout.decode("utf-8", "surrogateescape").split("\0") if path}
sys.exit("\n".join("%s: unknown file at the root; remove it, or add it to tests/root.py" % ascii(name)[1:-1]
                   for name in sorted(there - KNOWN)) or 0)
