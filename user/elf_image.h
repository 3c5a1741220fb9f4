/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF file of a target: symbols, and where its parts lie in memory. */
#ifndef PYBPFPROF_ELF_IMAGE_H
#define PYBPFPROF_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_image;

/* Takes over FD.  NULL where it is no 64-bit ELF file of this machine. */
struct elf_image *elf_image__open(int fd);
void elf_image__close(struct elf_image *image);

/* The address that the file gives to a symbol it defines, in .dynsym or else .symtab. */
bool elf_image__symbol(struct elf_image *image, const char *name, uint64_t *address);

/* What is to be added to the file's addresses where the executable part that begins at
 * FILE_OFFSET (a mapping's) is mapped at START; false where no executable segment is there. */
bool elf_image__bias(struct elf_image *image, uint64_t start, uint64_t file_offset, uint64_t *bias);

/* Calls VISIT with the contents of each segment that is not writable, until it returns true;
 * returns whether it did. */
bool elf_image__search_constants(struct elf_image *image,
				 bool (*visit)(const uint8_t *bytes, size_t length, void *context),
				 void *context);

#endif
