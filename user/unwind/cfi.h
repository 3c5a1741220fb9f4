/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information: where the caller's registers are, for each instruction of a file.
 *
 * The format is DWARF's (version 4, section 6.4), in the form of .eh_frame (Linux Standard Base,
 * "Exception Frames").  A file is hostile: everything is bounded.  A rule that a row cannot express
 * becomes ROW_UNSUPPORTED, never a guess.
 */
#ifndef PYBPFPROF_CFI_H
#define PYBPFPROF_CFI_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"
#include "unwind.h"

/* Bounds of a file: its rows, its functions, and its CIEs, which functions share. */
#define CFI_ROWS_MAX	  (4 * 1024 * 1024)
#define CFI_FUNCTIONS_MAX (2 * 1024 * 1024)
#define CFI_SHARED_MAX	  (64 * 1024)

/* A larger .eh_frame is not read: one for 1 GiB of code is smaller. */
#define CFI_BYTES_MAX (64ULL * 1024 * 1024)

/* A file's .eh_frame. */
struct cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t address; /* of the first byte, in the file */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
};

/* WORD (unwind.h) holds from ADDRESS up to the next row. */
struct cfi_row {
	uint64_t address;
	uint32_t word;
};

struct cfi_rows {
	/* By address.  Each function begins with a row; in a function, neighbours differ.  The last
	 * row is ROW_NONE. */
	struct cfi_row *all;
	size_t count, capacity;
	size_t function;	   /* the first row of the function that was read last */
	struct unwind_rule *rules; /* that do not fit into a word */
	size_t rule_count, rule_capacity;
	uint64_t *starts; /* the addresses of the functions, sorted */
	size_t start_count;
	size_t unsupported; /* rules that no row can express */
	size_t broken;	    /* invalid entries */
};

/* Loads the .eh_frame of IMAGE into SECTION.  Section headers are not needed.  Returns its bytes,
 * which SECTION refers to and the caller frees.  NULL: there is none, it is too large, or the
 * machine is unknown. */
void *cfi__load(struct elf_image *image, struct cfi_section *section);

/* Reads SECTION into ROWS, which is zeroed.  0; -ENOTSUP for another machine; -E2BIG beyond the
 * bounds above, or 4 GiB.  Free with cfi_rows__free in any case. */
int cfi__read(const struct cfi_section *section, struct cfi_rows *rows);
void cfi_rows__free(struct cfi_rows *rows);

#endif
