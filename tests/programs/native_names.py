# SPDX-License-Identifier: BSD-2-Clause
"""native_names.py LIBRARY: uses the CPU in a library built from native_names.cc."""

import ctypes
import sys

names_spin = ctypes.PyDLL(sys.argv[1]).names_spin
print("ready")
sys.stdout.flush()
while True:
    names_spin()
