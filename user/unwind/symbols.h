/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that the symbol table of an ELF file names. */
#ifndef PYBPFPROF_SYMBOLS_H
#define PYBPFPROF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

/* A longer name is not taken from a file. */
#define SYMBOLS_NAME_BYTES_MAX 4096

struct symbols;

/* Reads the functions of .symtab, or those that the file exports if .symtab has none.  IMAGE may be
 * closed afterwards.  NULL: no functions, a table that cannot be read or has, with its names, more
 * than BYTES_MAX bytes, or a file for another machine.  A read beyond IMAGE's budget sets its
 * `exceeded`.  The caller frees with symbols__free. */
struct symbols *symbols__read(struct elf_image *image, uint64_t bytes_max);

/* SYMBOLS may be NULL. */
void symbols__free(struct symbols *symbols);

/* The memory that they take, in bytes.  SYMBOLS may be NULL. */
uint64_t symbols__bytes(const struct symbols *symbols);

/* How many functions there are; at most one begins at an address.  SYMBOLS may be NULL. */
size_t symbols__count(const struct symbols *symbols);

/* The name of the function INDEX in the order of addresses, from 0.  *START is the address that the
 * file gives it, *SIZE its length in bytes.  The name is as the compiler wrote it, without a
 * version, and lives as long as SYMBOLS. */
const char *symbols__at(const struct symbols *symbols, size_t index, uint64_t *start,
			uint64_t *size);

/* The same for the function that ADDRESS lies in: the innermost one if functions overlap.  NULL if
 * there is none.  SYMBOLS may be NULL. */
const char *symbols__name(const struct symbols *symbols, uint64_t address, uint64_t *start,
			  uint64_t *size);

/* The length of NAME without the suffixes of the compiler's copies and parts of a function, such as
 * ".constprop.0" and ".cold". */
size_t symbols__base_length(const char *name);

/* The text to show for NAME, without suffixes as above: a C++ name becomes
 * "std::vector::push_back", without parameters and arguments of templates, and a Rust name loses
 * its hash.  Rust's newer names
 * (_R...) and what cannot be demangled stay as they are.  At most SYMBOLS_NAME_BYTES_MAX bytes, any
 * but NUL; valid UTF-8 if NAME is.  The caller frees. */
char *symbols__demangle(const char *name);

#endif
