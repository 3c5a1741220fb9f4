/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of one file, as BPF looks them up. */
#ifndef PYBPFPROF_FILE_ROWS_H
#define PYBPFPROF_FILE_ROWS_H

#include <stdbool.h>

#include "pybpfprof.h"
#include "unwind/cfi.h"
#include "unwind/chunks.h"
#include "unwind/symbols.h"

/* Marks the rows of an interpreter, or of the C library, by the functions that SYMBOLS name:
 * ROW_PLUMBING and ROW_EVAL_LOOP.  A function that has no name counts as plumbing.  SYMBOLS may be
 * NULL. */
void file_rows__mark(struct cfi_rows *rows, const struct symbols *symbols);

/* Puts ROWS into CHUNKS, and where they are into FILE, but for its rules.  0, -E2BIG for a file
 * that would take more than half of all room, or as chunks__take. */
int file_rows__store(struct chunks *chunks, const struct cfi_rows *rows, struct unwind_file *file);

#endif
