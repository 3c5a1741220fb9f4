/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads parts of an ELF file.  Only user/elf/ and user/unwind/ use this.  Entries of tables in a
 * 32-bit file are converted to 64-bit ones. */
#ifndef PYBPFPROF_ELF_PARTS_H
#define PYBPFPROF_ELF_PARTS_H

#include "elf/elf_image.h"

/* Multiples of a symbol's size in 32-bit and 64-bit files.  No search string is longer than the
 * overlap. */
#define READ_BYTES    (4096 * sizeof(Elf64_Sym))
#define OVERLAP_BYTES (4 * sizeof(Elf64_Sym))

struct elf_format;

/* Reads LENGTH bytes at OFFSET.  False if the file does not have all of them. */
bool elf_parts__read(const struct elf_image *image, uint64_t offset, void *buffer, uint64_t length);

/* Reads a part of at most MOST bytes.  The caller frees.  NULL if it cannot be read, or is too
 * long. */
void *elf_parts__load(struct elf_image *image, uint64_t offset, uint64_t length, uint64_t most);

/* Charges further reads to BUDGET, which must outlive them. */
void elf_image__set_budget(struct elf_image *image, struct elf_budget *budget);

/* Formats of Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn, Elf64_Shdr and Elf64_Sym. */
extern const struct elf_format ELF_HEADER, ELF_SEGMENT, ELF_DYNAMIC, ELF_SECTION, ELF_SYMBOL;

/* The size of an entry in the file, in bytes. */
size_t elf_parts__size_of(const struct elf_image *image, const struct elf_format *format);

/* Converts the entry at BYTES, which need not be aligned, to *WIDE. */
void elf_parts__widen(const struct elf_image *image, const struct elf_format *format,
		      const void *bytes, void *wide);

/* Reads a table of COUNT entries, at most UINT16_MAX, as 64-bit entries.  The caller frees.  NULL
 * if it cannot be read. */
void *elf_parts__load_table(struct elf_image *image, const struct elf_format *format,
			    uint64_t offset, size_t count);

/* Visits a part of the file in blocks.  Each block begins with the end of the one before.  Returns
 * whether VISIT stopped it. */
bool elf_parts__visit(struct elf_image *image, uint64_t offset, uint64_t length,
		      elf_image__visit visit, void *context);

/* A symbol table and its names, as file offsets and sizes.  Nothing is checked. */
struct symbol_table {
	uint64_t symbols, count;
	uint64_t strings, strings_bytes;
};

/* Finds the table of TYPE by its section header: SHT_SYMTAB, which strip(1) removes, or SHT_DYNSYM,
 * the exported symbols.  False if there is none. */
bool elf_symbols__find_table(const struct elf_image *image, uint32_t type,
			     struct symbol_table *table);

#endif
