#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# gcc for the musl C library, as CPython's configure wants it: Debian's names the
# GNU C library's folder for this machine, whatever it compiles for.
set -eu

[ "$*" = --print-multiarch ] || exec musl-gcc "$@"
