/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions in the symbol table of an ELF file. */
#ifndef PYBPFPROF_SYMBOLS_H
#define PYBPFPROF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

/* Symbols with longer names are ignored. */
#define SYMBOLS_NAME_BYTES_MAX 4096

struct symbols;

/* Reads the functions of .symtab, or the exported ones if .symtab has none.  IMAGE may be closed
 * afterwards.  NULL: there are no functions, the table cannot be read, it has more than BYTES_MAX
 * bytes with its names, or the file is for another machine.  A read beyond IMAGE's budget sets its
 * `exceeded`.  Free with symbols__free. */
struct symbols *symbols__read(struct elf_image *image, uint64_t bytes_max);

/* SYMBOLS may be NULL here and below, except for symbols__at. */
void symbols__free(struct symbols *symbols);

/* Bytes of memory in use. */
uint64_t symbols__bytes(const struct symbols *symbols);

/* The number of functions; at most one begins at an address. */
size_t symbols__count(const struct symbols *symbols);

/* The name of function INDEX in the order of addresses, from 0.  *START is its address in the file,
 * *SIZE its length in bytes.  The name is the compiler's, without a version, and lives as long as
 * SYMBOLS. */
const char *symbols__at(const struct symbols *symbols, size_t index, uint64_t *start,
			uint64_t *size);

/* The same for the function that contains ADDRESS, the innermost one if functions overlap.  NULL:
 * there is none. */
const char *symbols__name(const struct symbols *symbols, uint64_t address, uint64_t *start,
			  uint64_t *size);

/* The length of NAME without the suffixes of a compiler's copies and parts of a function, such as
 * ".constprop.0" and ".cold". */
size_t symbols__base_length(const char *name);

/* The text that is shown for NAME, without suffixes as above: a C++ name becomes
 * "std::vector::push_back", without parameters and template arguments; a Rust name loses its hash.
 * Rust's newer names (_R...) and unknown ones stay as they are.  At most SYMBOLS_NAME_BYTES_MAX
 * bytes, any but NUL; valid UTF-8 if NAME is.  The caller frees. */
char *symbols__demangle(const char *name);

#endif
