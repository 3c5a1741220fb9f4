/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of an ELF file's tables.  Those of a 32-bit file are narrower, and are read as if
 * they were a 64-bit one's, so that nobody else has to know both. */
#ifndef PYBPFPROF_ELF_FORMAT_H
#define PYBPFPROF_ELF_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

struct elf_format {
	size_t size, narrow_size; /* of an entry of a 64-bit file, and of a 32-bit one */
	void (*widen)(const void *narrow, void *wide);
};

/* Of Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn, Elf64_Shdr and Elf64_Sym. */
extern const struct elf_format ELF_HEADER, ELF_SEGMENT, ELF_DYNAMIC, ELF_SECTION, ELF_SYMBOL;

/* How many bytes an entry of a file has that is NARROW or not. */
size_t elf_format__size(const struct elf_format *format, bool narrow);

/* Reads the entry in BYTES of such a file, which need not be aligned, into *WIDE. */
void elf_format__read(const struct elf_format *format, bool narrow, const void *bytes, void *wide);

#endif
