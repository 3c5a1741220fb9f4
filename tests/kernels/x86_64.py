# SPDX-License-Identifier: BSD-2-Clause
"""The properties of x86-64 machines in tests/kernels."""

# QEMU's cmpxchg16b can leave wrong flags behind, which an interrupt at that moment then restores.
# So the kernel must do without the instruction.
EMULATOR = ("qemu-system-x86_64", "-cpu", "max,-cx16")
CONSOLE, RESULTS = "ttyS0", "ttyS1"
RESULTS_PORT = ("-serial", "file:{}")
DEBIAN_NAME = "amd64"
KERNEL_PACKAGE = "linux-image-cloud-amd64"
