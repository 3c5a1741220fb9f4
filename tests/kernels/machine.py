#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""machine.py KERNEL ARCH: a shell in a machine with one of Debian's kernels; `exit` turns it off.

ARCH is as in `make ARCH=...`, which must have built the profiler.

Tests run jobs there instead.  The processor is emulated, because virtual machines may lack KVM.  In
the jobs' machine every instruction takes the same time, so its clock and its samples do not depend
on this machine's load.
"""

import base64
import collections
import importlib
import json
import os
import subprocess
import sys
import tempfile
import zlib

import debian_kernels
import few
import foreign
import image
import own

ROOT = os.path.dirname(os.path.dirname(image.HERE))
MEMORY_MB = 1024
NANOSECONDS_LOG2 = 3  # per instruction
PATIENCE_S = 1500

# contents: the module own, few or foreign.
Machine = collections.namedtuple("Machine", "architecture kernel contents")


def describe(kernel, contents):
    return Machine(importlib.import_module(contents.ARCHITECTURE), kernel, contents)


# This machine's architecture has a machine with each kernel.  The other one has one kernel, and for
# aarch64 another one with pages of 16 KiB.
MACHINES = {kernel: describe(kernel, own) for kernel in debian_kernels.SUITES}
if own.ARCHITECTURE != foreign.ARCHITECTURE:
    MACHINES["6.12-" + foreign.ARCHITECTURE] = describe("6.12", foreign)
    MACHINES["6.12-aarch64-16k"] = MACHINES["6.12-aarch64"]._replace(
        architecture=importlib.import_module("aarch64_16k"))
# The machines of `make test`.
FEW_MACHINES = {kernel: describe(kernel, few) for kernel in (debian_kernels.OLDEST, debian_kernels.NEWEST)}


def fetch_kernel(machine):
    return debian_kernels.fetch(machine.kernel, machine.architecture)


def start(machine, initrd, folder, what, cpus, *arguments, **options):
    """Starts the emulator with CPUS of its two CPUs online.  WHAT is init's first argument.
    FOLDER must exist until the emulator ends."""
    architecture = machine.architecture
    kernel = fetch_kernel(machine)
    initrd = image.with_module(initrd, debian_kernels.module_of(kernel), folder)
    append = "console=%s panic=-1 quiet maxcpus=%d -- %s %s" % (architecture.CONSOLE, cpus, what,
                                                               machine.kernel)
    return subprocess.Popen([*architecture.EMULATOR, "-m", str(MEMORY_MB), "-smp", "2", "-nodefaults",
                             "-display", "none", "-no-reboot", "-kernel", kernel,
                             "-initrd", initrd, "-append", append, *arguments], **options)


def run_jobs(machine, initrd):
    """{name of a job of the image (guest.py): its result}, and the console's output."""
    with tempfile.TemporaryDirectory() as folder:
        return run_jobs_in(folder, machine, initrd)


def run_jobs_in(folder, machine, initrd):
    console, results = (os.path.join(folder, name) for name in ("console", "results"))
    port = [argument.format(results) for argument in machine.architecture.RESULTS_PORT]
    process = start(machine, initrd, folder, machine.architecture.RESULTS, 1,
                    "-icount", "shift=%d,sleep=off" % NANOSECONDS_LOG2,
                    "-serial", "file:" + console, *port, stdin=subprocess.DEVNULL)
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
    return dict(json.loads(zlib.decompress(base64.b64decode(line))) for line in lines), said


def main():
    kernel, arch = sys.argv[1:]
    if kernel not in debian_kernels.SUITES:
        sys.exit("machine.py: no kernel %s, but %s" % (kernel, ", ".join(debian_kernels.SUITES)))
    machine = describe(kernel, foreign if arch == foreign.OUTPUT else own)
    lacking = machine.contents.missing()
    if lacking:
        sys.exit("machine.py: no %s: deploy/packages.sh prove" % ", ".join(lacking))
    binary = os.path.join(ROOT, ".output", machine.contents.OUTPUT, "pybpfprof")
    with tempfile.TemporaryDirectory() as folder:
        initrd = image.build(folder, machine.contents, {"/usr/bin/pybpfprof": binary}, {})
        release = debian_kernels.release(fetch_kernel(machine))
        print("machine: %s; Ctrl-A X ends it by force" % release)
        start(machine, initrd, folder, "shell", 2, "-serial", "mon:stdio").wait()


if __name__ == "__main__":
    main()
