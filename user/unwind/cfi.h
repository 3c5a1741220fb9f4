/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information: for each instruction of a file, where its caller's registers are.
 *
 * The format is DWARF's (version 4, section 6.4), in the form of .eh_frame (Linux Standard Base,
 * "Exception Frames").  A file is hostile: everything is bounded, and what cannot be expressed
 * is ROW_UNSUPPORTED, never guessed.
 */
#ifndef PYBPFPROF_CFI_H
#define PYBPFPROF_CFI_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind.h"

/* No file has more rows, functions, and descriptions that functions share. */
#define CFI_ROWS_MAX	  (4 * 1024 * 1024)
#define CFI_FUNCTIONS_MAX (2 * 1024 * 1024)
#define CFI_SHARED_MAX	  (64 * 1024)

/* A file's .eh_frame. */
struct cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t address; /* that the file gives to the first byte */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
};

/* From ADDRESS on, up to the next row's, WORD holds (unwind.h). */
struct cfi_row {
	uint64_t address;
	uint32_t word;
};

struct cfi_rows {
	/* By address; each function begins with one, and in it no two neighbours are alike; the
	 * last one is ROW_NONE. */
	struct cfi_row *all;
	size_t count, capacity;
	size_t function;	   /* the first row of the one that was read last */
	struct unwind_rule *rules; /* those that do not fit into a word */
	size_t rule_count, rule_capacity;
	uint64_t *starts; /* of the functions that are described, by address */
	size_t start_count;
	size_t unsupported; /* states that cannot be expressed */
	size_t broken;	    /* entries that are not sound */
};

/* Whether call frame information of MACHINE, ELF's number, can be read. */
bool cfi__knows(uint16_t machine);

/* Reads all of SECTION into ROWS, zeroed.  0; -ENOTSUP for another machine; -E2BIG where there is
 * more than the bounds above, or 4 GiB.  Free with cfi_rows__free in any case. */
int cfi__read(const struct cfi_section *section, struct cfi_rows *rows);
void cfi_rows__free(struct cfi_rows *rows);

#endif
