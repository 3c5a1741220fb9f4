/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a file, in the form in which BPF looks them up. */
#ifndef PYBPFPROF_FILE_ROWS_H
#define PYBPFPROF_FILE_ROWS_H

#include <stdbool.h>

#include "pybpfprof.h"
#include "unwind/cfi.h"
#include "unwind/chunks.h"
#include "unwind/symbols.h"

/* Marks the ROWS of functions by their names in SYMBOLS, which may be NULL.  In an interpreter or
 * the C library: ROW_PLUMBING and ROW_EVAL_LOOP; unnamed functions count as plumbing.  OF_GREENLET,
 * in the greenlet module: ROW_STACK_BASE. */
void file_rows__mark(struct cfi_rows *rows, const struct symbols *symbols, bool of_greenlet);

/* Stores ROWS in CHUNKS, and their place in FILE, except `rules`.  0, -ENOENT if there are no rows,
 * -E2BIG if they need more than half of all room, or as chunks__take. */
int file_rows__store(struct chunks *chunks, const struct cfi_rows *rows, struct unwind_file *file);

#endif
