# SPDX-License-Identifier: BSD-2-Clause
"""The file system of the machines of tests/kernels, all of it in memory.

It has /usr/bin/pybpfprof, a busybox, runc and the Pythons, each with only what it has loaded
(closure.py). own.py, few.py and foreign.py provide these.  Pythons of other suites have their own
roots, /roots/SUITE, as in a container. /programs, in every root, is tests/programs.
"""

import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(os.path.dirname(HERE), "programs")
CLOSURE = os.path.join(HERE, "closure.py")
GUEST = os.path.join(HERE, "guest.py")
# The programs of the jobs; the Pythons get the modules that these import.
RUN = [os.path.join(PROGRAMS, name) for name in
       ("busy.py", "deep.py", "depth.py", "portable.py", "shares.py", "totals.py")]


def guest_command(python):
    """The command that starts one of tests/e2e/pythons.py in the machine."""
    if not python.root:
        return [python.path]
    return ["chroot", "/roots/" + os.path.basename(python.root), python.path]


def make_root(root):
    for name in "bin", "sbin", "lib", "lib64":
        os.makedirs(os.path.join(root, "usr", name))
        os.symlink("usr/" + name, os.path.join(root, name))
    for name in "proc", "sys", "dev", "tmp", "roots":
        os.mkdir(os.path.join(root, name))
    shutil.copytree(PROGRAMS, os.path.join(root, "programs"),
                    ignore=shutil.ignore_patterns("__pycache__"))


def add_file(root, path, name):
    """Adds NAME, a copy of this machine's PATH."""
    folder = root + os.path.realpath(os.path.dirname(name))
    os.makedirs(folder, exist_ok=True)
    shutil.copy2(path, os.path.join(folder, os.path.basename(name)))


def add_closure(root, command, programs):
    """Adds what the Python that COMMAND starts needs to run PROGRAMS."""
    ended = subprocess.run([*command, "-B", CLOSURE, root, *programs], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True)
    assert ended.returncode == 0, ended.stdout


def add_text(root, name, text):
    os.makedirs(root + os.path.dirname(name), exist_ok=True)
    with open(root + name, "w", encoding="utf-8") as file:
        file.write(text)


def pack(root, path):
    """Appends the contents of ROOT to PATH, as an archive that the kernel unpacks."""
    with open(path, "ab") as file:
        subprocess.run("find . | cpio --quiet -o -H newc", shell=True, cwd=root, stdout=file,
                       check=True)


def build(folder, contents, files, texts):
    """Writes the image into FOLDER, and returns its path.  CONTENTS is own.py or foreign.py.
    FILES maps names there to this machine's files, and TEXTS names to contents."""
    root = os.path.join(folder, "root")
    make_root(root)
    for name, path in [("/guest.py", GUEST), ("/init", os.path.join(HERE, "init")), *files.items(),
                       *(("/usr/bin/" + name, path) for name, path in contents.tools().items())]:
        add_file(root, path, name)
        contents.add_libraries(root, path)
    os.symlink(contents.add_agent(root, [GUEST]), os.path.join(root, "agent"))
    for python in contents.pythons():
        own = root + guest_command(python)[1] if python.root else root
        if not os.path.isdir(own):
            make_root(own)
        contents.add_python(own, python, RUN)
    for name, text in texts.items():
        add_text(root, name, text)
    image = os.path.join(folder, "image")
    pack(root, image)
    shutil.rmtree(root)
    return image


def with_module(image, module, folder):
    """Copies the image to FOLDER, with a kernel's module added; returns the copy's path."""
    root, whole = (os.path.join(folder, name) for name in ("module", "initrd"))
    os.mkdir(root)
    shutil.copy(module, root)
    shutil.copyfile(image, whole)
    pack(root, whole)
    return whole
