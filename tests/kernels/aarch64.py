# SPDX-License-Identifier: BSD-2-Clause
"""What aarch64 has of its own in the machines of tests/kernels."""

# Pointers are authenticated by a function that takes the emulator no longer than others.
EMULATOR = ("qemu-system-aarch64", "-machine", "virt", "-cpu", "max,pauth-impdef=on")
CONSOLE, RESULTS = "ttyAMA0", "ttyS0"
RESULTS_PORT = ("-chardev", "file,id=results,path={}", "-device", "pci-serial,chardev=results")
DEBIAN_NAME = "arm64"
KERNEL_PACKAGE = "linux-image-cloud-arm64"
