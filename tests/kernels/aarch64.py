# SPDX-License-Identifier: BSD-2-Clause
"""The properties of aarch64 machines in tests/kernels."""

# The emulator computes this kind of pointer authentication as fast as other instructions.
EMULATOR = ("qemu-system-aarch64", "-machine", "virt", "-cpu", "max,pauth-impdef=on")
CONSOLE, RESULTS = "ttyAMA0", "ttyS0"
RESULTS_PORT = ("-chardev", "file,id=results,path={}", "-device", "pci-serial,chardev=results")
DEBIAN_NAME = "arm64"
KERNEL_PACKAGE = "linux-image-cloud-arm64"
