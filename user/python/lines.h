/* SPDX-License-Identifier: BSD-2-Clause */
/* Line tables: from an instruction to its line, for each of CPython's formats. */
#ifndef PYBPFPROF_LINES_H
#define PYBPFPROF_LINES_H

#include <stddef.h>
#include <stdint.h>

/* No line: the instruction is the compiler's own, or the table ends before it. */
#define LINE_NONE 0

/* LINE, or LINE_NONE where it is below 1: lines are computed modulo 2^32, for a program may number
 * its own, and tables may lead anywhere. */
uint32_t lines__valid(uint32_t line);

/* The line of the instruction at POSITION in a code object whose first line is FIRST_LINE and whose
 * table is the LENGTH bytes at TABLE, as it is shown: FIRST_LINE where the table has the
 * instruction, but no line for it, as for those that set up a frame.  VERSION is PY_VERSION_HEX.
 * POSITION is counted as that version does (2.7-3.9: bytes; 3.10 and later: code units); a negative
 * one is before the first instruction and gives FIRST_LINE.  Any bytes are safe to pass. */
uint32_t lines__shown(uint32_t version, const uint8_t *table, size_t length, uint32_t first_line,
		      int32_t position);

#endif
