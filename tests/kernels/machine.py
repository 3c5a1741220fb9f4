#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""machine.py [KERNEL]: a shell in a machine with one of Debian's kernels; `exit` turns it off.

Tests run jobs there instead.  The processor is emulated, for virtual machines cannot be counted on
to have KVM.  The jobs' machine has one that takes the same time for every instruction, whatever
this machine has to do: its clock and its samples do not depend on how busy it is.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import zlib

import debian_kernels
import image

ROOT = os.path.dirname(os.path.dirname(image.HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import pythons  # noqa: E402

MEMORY_MB = 1024
NANOSECONDS_LOG2 = 3  # of an instruction
PATIENCE_S = 900
ARCHITECTURE = debian_kernels.architecture
WANTED = (2, 7), (3, 8), (3, 11), (3, 13), (3, 14)


def guest_pythons():
    """One of each wanted version; 3.9 will do for 3.8."""
    found = {python.version[:2]: python for python in pythons.one_of_each_minor()}
    return [found[version] for version in
            ((3, 9) if version == (3, 8) and version not in found else version
             for version in WANTED) if version in found]


def start(kernel, initrd, what, *arguments, **options):
    """Starts the emulator.  WHAT is init's argument."""
    append = "console=%s0 panic=-1 quiet -- %s" % (ARCHITECTURE.SERIAL, what)
    return subprocess.Popen([*ARCHITECTURE.EMULATOR, "-m", str(MEMORY_MB), "-nodefaults",
                             "-display", "none", "-no-reboot", "-kernel", kernel, "-initrd", initrd,
                             "-append", append, *arguments], **options)


def run_jobs(kernel, initrd, folder):
    """The results of the image's jobs (guest.py) under a kernel."""
    console, results = (os.path.join(folder, name) for name in ("console", "results"))
    process = start(kernel, initrd, ARCHITECTURE.SERIAL + "1",
                    "-icount", "shift=%d,sleep=off" % NANOSECONDS_LOG2,
                    "-serial", "file:" + console, "-serial", "file:" + results,
                    stdin=subprocess.DEVNULL)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()
    with open(results, "rb") as file:
        lines = file.read().split()
    with open(console, encoding="utf-8", errors="replace") as file:
        said = file.read()
    return [json.loads(zlib.decompress(base64.b64decode(line))) for line in lines], said


def main():
    name = sys.argv[1] if len(sys.argv) == 2 else "newest"
    if name not in debian_kernels.SUITES:
        sys.exit("machine.py: no kernel %s, but %s" % (name, ", ".join(debian_kernels.SUITES)))
    binary = os.path.join(ROOT, ".output", "pybpfprof")
    with tempfile.TemporaryDirectory() as folder:
        initrd = image.build(folder, {"/usr/bin/pybpfprof": binary}, guest_pythons(), [])
        kernel = debian_kernels.fetch(name)
        print("machine: %s; Ctrl-A X ends it by force" % debian_kernels.release(kernel))
        start(kernel, initrd, "shell", "-smp", "2", "-serial", "mon:stdio").wait()


if __name__ == "__main__":
    main()
