# SPDX-License-Identifier: BSD-2-Clause
"""Minimal Debian root folders, which debootstrap makes and the tests' cache keeps.  Runs commands in
copies of them."""

import os
import shutil
import subprocess

from conftest import missing
from deploy_tools import FOLDER

import debian  # deploy_tools.py adds its folder to the path

# $1: the root, $2: the user, $3: the folder, $4: the command.
RUN = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot "$1" setpriv --reuid="$2" --regid="$2" --init-groups --reset-env \
    sh -euc 'cd "$1"; eval "$2"' sh "$3" "$4"
"""


def provide(suite, require):
    """The root folder of SUITE.  Callers must copy it, not change it."""
    def fill(new):
        try:
            mirror = debian.find_mirror()
        except debian.Unreachable as reason:
            missing("mirror of Debian (%s)" % reason)
        # In a mount namespace, so that debootstrap's mounts vanish even if it is killed.
        subprocess.run(["unshare", "--mount", require("debootstrap"), "--variant=minbase", suite, new,
                        mirror], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        shutil.copy("/etc/resolv.conf", os.path.join(new, "etc", "resolv.conf"))
    return keep("debian-" + suite, fill)


def keep(name, fill):
    """The folder NAME of the cache.  FILL(FOLDER) makes it if it is missing."""
    kept = os.path.join(FOLDER, name)
    with debian.only_one():
        if not os.path.isdir(kept):
            subprocess.run(["rm", "-rf", "--one-file-system", kept + ".new"], check=True)
            os.makedirs(FOLDER, exist_ok=True)
            fill(kept + ".new")
            os.rename(kept + ".new", kept)
    return kept


def copy(source, target):
    subprocess.run(["cp", "-a", source, target], check=True)


def run_in(root, command, user="root", folder="/"):
    """The output of a shell COMMAND, which must succeed."""
    done = subprocess.run(["unshare", "--mount", "sh", "-euc", RUN, "sh", root, user, folder, command],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, errors="replace")
    assert done.returncode == 0, "%s: %s" % (command, done.stdout[-3000:])
    return done.stdout
