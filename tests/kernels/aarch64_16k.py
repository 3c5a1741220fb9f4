# SPDX-License-Identifier: BSD-2-Clause
"""As aarch64.py, with pages of 16 KiB."""

from aarch64 import CONSOLE, DEBIAN_NAME, EMULATOR, RESULTS, RESULTS_PORT  # noqa: F401

KERNEL_PACKAGE = "linux-image-arm64-16k"
