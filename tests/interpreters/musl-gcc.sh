#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# gcc for the musl C library, for CPython's configure.  Debian's musl-gcc would
# always print the folder of the GNU C library.
set -eu

[ "$*" = --print-multiarch ] || exec musl-gcc "$@"
