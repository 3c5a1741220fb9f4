/* SPDX-License-Identifier: BSD-2-Clause */
/* Line tables, in each of CPython's formats. */
#ifndef PYBPFPROF_LINES_H
#define PYBPFPROF_LINES_H

#include <stddef.h>
#include <stdint.h>

/* The instruction was made by the compiler, or is not in the table. */
#define LINE_NONE 0

/* LINE; LINE_NONE if it is below 1.  Lines are computed modulo 2^32: a program may choose any line
 * numbers, and a table may lead anywhere. */
uint32_t lines__valid(uint32_t line);

/* The line to show for the instruction at POSITION of a code object with FIRST_LINE and the LENGTH
 * bytes of line table at TABLE.  Any bytes are safe.  It is FIRST_LINE if the table has no line for
 * the instruction, as for those that set up a frame, or if POSITION is negative, which is before
 * the first instruction; LINE_NONE if the instruction is not in the table.  VERSION is
 * PY_VERSION_HEX. POSITION is in bytes up to 3.9, in code units from 3.10 on. */
uint32_t lines__shown(uint32_t version, const uint8_t *table, size_t length, uint32_t first_line,
		      int32_t position);

#endif
