# SPDX-License-Identifier: BSD-2-Clause
"""What x86-64 has of its own in the machines of tests/kernels."""

# QEMU's cmpxchg16b can leave any flags behind, which an interrupt at that moment then restores: the
# kernel does without it.
EMULATOR = ("qemu-system-x86_64", "-cpu", "max,-cx16")
CONSOLE, RESULTS = "ttyS0", "ttyS1"
RESULTS_PORT = ("-serial", "file:{}")
DEBIAN_NAME = "amd64"
KERNEL_PACKAGE = "linux-image-cloud-amd64"
