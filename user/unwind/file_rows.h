/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of one file, as BPF looks them up. */
#ifndef PYBPFPROF_FILE_ROWS_H
#define PYBPFPROF_FILE_ROWS_H

#include <stdbool.h>

#include "pybpfprof.h"
#include "unwind/cfi.h"
#include "unwind/chunks.h"
#include "unwind/symbols.h"

/* Marks ROWS by the functions that SYMBOLS name.  Those of an interpreter, or of the C library:
 * ROW_PLUMBING and ROW_EVAL_LOOP; a function that has no name counts as plumbing.  Those of the
 * greenlet module, OF_GREENLET: ROW_STACK_BASE.  SYMBOLS may be NULL. */
void file_rows__mark(struct cfi_rows *rows, const struct symbols *symbols, bool of_greenlet);

/* Puts ROWS into CHUNKS, and where they are into FILE, but for its rules.  0, -E2BIG for a file
 * that would take more than half of all room, or as chunks__take. */
int file_rows__store(struct chunks *chunks, const struct cfi_rows *rows, struct unwind_file *file);

#endif
