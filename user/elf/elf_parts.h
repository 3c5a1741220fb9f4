/* SPDX-License-Identifier: BSD-2-Clause */
/* How parts of an ELF file are read: for user/elf/ and user/unwind/ alone.  The entries of its
 * tables are narrower in a 32-bit file, and what is used of them is read as if it were a 64-bit
 * one's. */
#ifndef PYBPFPROF_ELF_PARTS_H
#define PYBPFPROF_ELF_PARTS_H

#include "elf/elf_image.h"

/* Both multiples of a symbol's, of either width; what is looked for is not longer than the second.
 */
#define READ_BYTES    (4096 * sizeof(Elf64_Sym))
#define OVERLAP_BYTES (4 * sizeof(Elf64_Sym))

struct elf_format;
struct known_symbol;

/* Where PT_DYNAMIC says that things are, as offsets in the file; 0: nowhere. */
struct dynamic {
	uint64_t symbols, strings, strings_size, gnu_hash;
	bool debug; /* it has a place for a debugger's data, which linkers give to programs alone */
};

struct elf_image {
	int fd;
	pid_t pid; /* on whose account it is read */
	uint64_t size;
	struct elf_budget *budget;
	bool narrow; /* a 32-bit file */
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections; /* NULL where there are none */
	struct dynamic dynamic;
	struct known_symbol *symbols;
	uint8_t *room; /* for what is being read: who waits for that may be left behind */
	uint32_t note;
};

/* Reads what the file has at OFFSET; false where it has not all of that. */
bool elf_parts__read(const struct elf_image *image, uint64_t offset, void *buffer, uint64_t length);

/* A part of the file, or NULL; the caller frees. */
void *elf_parts__load(struct elf_image *image, uint64_t offset, uint64_t length, uint64_t most);

/* From now on what is read comes from BUDGET, which must outlive that. */
void elf_image__set_budget(struct elf_image *image, struct elf_budget *budget);

/* The entries of tables: Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn, Elf64_Shdr and Elf64_Sym. */
extern const struct elf_format ELF_HEADER, ELF_SEGMENT, ELF_DYNAMIC, ELF_SECTION, ELF_SYMBOL;

/* How many bytes the file has of each entry of FORMAT. */
size_t elf_parts__size_of(const struct elf_image *image, const struct elf_format *format);

/* Reads the entry in BYTES of the file, which need not be aligned, into *WIDE. */
void elf_parts__widen(const struct elf_image *image, const struct elf_format *format,
		      const void *bytes, void *wide);

/* COUNT such entries, which is no more than UINT16_MAX, as a 64-bit file has them; else likewise.
 */
void *elf_parts__load_table(struct elf_image *image, const struct elf_format *format,
			    uint64_t offset, size_t count);

/* Calls VISIT with one block of a part of the file after another until it returns true; returns
 * whether it did.  A block begins with the end of the one before. */
bool elf_parts__visit(struct elf_image *image, uint64_t offset, uint64_t length,
		      elf_image__visit visit, void *context);

/* Where the file has a table of symbols and their names, as offsets and sizes that were not
 * checked. */
struct symbol_table {
	uint64_t symbols, count;
	uint64_t strings, strings_bytes;
};

/* Finds the table of TYPE by its section header: SHT_SYMTAB, which strip(1) removes, or SHT_DYNSYM,
 * the exported symbols.  False if there is none. */
bool elf_symbols__find_table(const struct elf_image *image, uint32_t type,
			     struct symbol_table *table);

/* Frees what is known of IMAGE's symbols. */
void elf_symbols__forget(struct elf_image *image);

#endif
