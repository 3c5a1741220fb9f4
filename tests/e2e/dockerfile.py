# SPDX-License-Identifier: BSD-2-Clause
"""Runs a Dockerfile's instructions without docker.  Each stage has its own root, made by debootstrap, and
its commands run as the user and in the folder that the Dockerfile sets.

Supports what our Dockerfile uses: FROM (Debian or scratch), COPY, RUN, USER, WORKDIR, ENTRYPOINT and CMD.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess

from debian_root import copy, keep, provide, run_in

IMAGE = re.compile(r"debian:(\d+)-slim")
SUITES = {"12": "bookworm", "13": "trixie"}

def read(path):
    """[(instruction, text)] of a file, which must not have continued lines."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in map(str.strip, file):
            if line and not line.startswith("#"):
                assert not line.endswith("\\")
                found.append(tuple(line.split(None, 1)))
    return found


class Stage:
    def __init__(self, root, others, context):
        self.root = str(root)
        self.others = others
        self.context = str(context)
        self.user, self.folder = "root", "/"

    def inside(self, path):
        """The path on this machine of a path in the image."""
        return self.root + os.path.normpath(os.path.join(self.folder, path))

    def copy(self, text):
        words = text.split()
        options = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
        source, target = [word for word in words if not word.startswith("--")]
        if "from" in options:
            source = self.others[options["from"]].root + source
        else:
            source = os.path.normpath(os.path.join(self.context, source))
        place = self.inside(target)
        # As docker does, copy the contents of a folder, not the folder.
        if os.path.isdir(source):
            source += "/."
        os.makedirs(os.path.dirname(place), exist_ok=True)
        subprocess.run(["cp", "-a", source, place], check=True)
        owner = options.get("chown", "0:0")
        subprocess.run(["chroot", self.root, "chown", "-R", owner, place[len(self.root):]]
                       if self.has_shell() else ["chown", "-R", owner, place], check=True)

    def has_shell(self):
        return os.path.exists(os.path.join(self.root, "bin", "sh"))

    def follow(self, instruction, text):
        if instruction == "COPY":
            self.copy(text)
        elif instruction == "RUN":
            run_in(self.root, text, self.user, self.folder)
        elif instruction == "USER":
            self.user = text
        elif instruction == "WORKDIR":
            self.folder = text
            os.makedirs(self.root + text, exist_ok=True)
        else:
            raise AssertionError("not followed: " + instruction)


def copy_context(folder, context):
    """Copies the build context: everything but the names in .dockerignore."""
    with open(os.path.join(folder, ".dockerignore"), encoding="utf-8") as file:
        names = file.read().split()
    shutil.copytree(folder, context, symlinks=True, ignore=lambda path, _: (
        names if os.path.samefile(path, folder) else []))


class Image:
    """The image that the Dockerfile PATH builds from CONTEXT, below WORK.  The cache keeps the result of
    the slow part, up to the first USER."""

    def __init__(self, path, context, work, require):
        self.work, self.require = str(work), require
        self.context = os.path.join(self.work, "context")
        copy_context(context, self.context)
        self.stages, self.settings, self.users = {}, {}, []
        lines = read(path)
        starts = [at for at, (word, _) in enumerate(lines) if word == "FROM"] + [len(lines)]
        for number, (start, end) in enumerate(zip(starts, starts[1:])):
            self.follow(number, lines[start][1], lines[start + 1:end])

    def follow(self, number, source, lines):
        """Builds the stage from one FROM to the next."""
        words = source.split()
        root = os.path.join(self.work, "stage-%d" % number)
        if words[0] == "scratch":
            os.mkdir(root)
        else:
            first = next((at for at, line in enumerate(lines) if line[0] == "USER"), 0)
            copy(self.provide_base(words[0], lines[:first]), root)
            lines = lines[first:]
        self.stages[words[-1]] = self.last = stage = Stage(root, self.stages, self.context)
        for instruction, text in lines:
            if instruction in ("ENTRYPOINT", "CMD"):
                self.settings[instruction] = json.loads(text)
            else:
                stage.follow(instruction, text)
        self.users.append(stage.user)

    def provide_base(self, image, lines):
        """The root folder of IMAGE after LINES, from the cache."""
        suite = SUITES[IMAGE.fullmatch(image)[1]]
        base = provide(suite, self.require)

        def fill(new):
            copy(base, new)
            stage = Stage(new, self.stages, self.context)
            for line in lines:
                stage.follow(*line)
        return keep("image-%s-%s" % (suite, self.digest(lines)), fill)

    def digest(self, lines):
        """A digest of everything that the root depends on: LINES and the files that they copy."""
        digest = hashlib.sha256(repr(lines).encode())
        for instruction, text in lines:
            if instruction == "COPY":
                with open(os.path.join(self.context, text.split()[-2]), "rb") as file:
                    digest.update(file.read())
        return digest.hexdigest()[:16]
