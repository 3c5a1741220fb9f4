/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF file of a target: symbols, and where its parts lie in memory. */
#ifndef PYBPFPROF_ELF_IMAGE_H
#define PYBPFPROF_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As many digits as a SHA-1 has, and a NUL. */
#define ELF_BUILD_ID_HEX_BYTES 41

struct elf_image;

/* What may be read of the files of one search, which are a process's. */
struct elf_budget {
	pid_t pid;
	uint64_t bytes;
	bool exceeded;	 /* a part was left out, for it was more than that */
	uint64_t missed; /* what deputy.h had counted when the search began */
};

/* Takes over FD.  NULL where it is no ELF file of programs, for this machine or another one, or has
 * its bytes in the other order.  BUDGET must outlive it. */
struct elf_image *elf_image__open(int fd, struct elf_budget *budget);
void elf_image__close(struct elf_image *image);

/* The address that the file gives to a symbol that it exports to other files: found by the hash
 * table that the dynamic linker uses, so that section headers need not be there. */
bool elf_image__exported_symbol(struct elf_image *image, const char *name, uint64_t *address);

/* The same of any symbol that it defines, exported or in .symtab; looked for once. */
bool elf_image__symbol(struct elf_image *image, const char *name, uint64_t *address);

/* The address that the file gives to its section NAME. */
bool elf_image__section(struct elf_image *image, const char *name, uint64_t *address);

/* What is to be added to the addresses of a file with COUNT SEGMENTS where the part that begins at
 * FILE_OFFSET (a mapping's) is mapped at START, and is EXECUTABLE or else writable; false where the
 * file has no such segment there. */
bool elf_segments__bias(const Elf64_Phdr *segments, size_t count, uint64_t start,
			uint64_t file_offset, bool executable, uint64_t *bias);

/* Whether it is a 32-bit file, whose parts are told as those of a 64-bit one. */
bool elf_image__is_narrow(const struct elf_image *image);

/* For which machine it is, by ELF's number; whether it is a 64-bit file for this one. */
uint16_t elf_image__machine(const struct elf_image *image);
bool elf_image__is_native(const struct elf_image *image);

/* Whether it was linked as a program, static or not, and not as a library. */
bool elf_image__is_program(const struct elf_image *image);

/* What its program headers say, COUNT of them; none was checked. */
const Elf64_Phdr *elf_image__segments(const struct elf_image *image, size_t *count);

/* A number that who reads IMAGE keeps with it, of his choice; 0 at first. */
uint32_t *elf_image__note(struct elf_image *image);

/* Whether the file's first SIZE bytes, to be copied to BYTES, are loaded, and the address that the
 * file gives them. */
bool elf_image__first_bytes(const struct elf_image *image, void *bytes, size_t size,
			    uint64_t *address);

/* Reads the LENGTH bytes that the file has for ADDRESS; false where it has not all of them. */
bool elf_image__initial_bytes(const struct elf_image *image, uint64_t address, void *bytes,
			      size_t length);

/* Reads what the file has from ADDRESS on: up to the end of the section that begins there; where it
 * has no section headers, up to its segment's end, MOST bytes of that.  The caller frees.  NULL
 * where that is nothing, or more than MOST. */
void *elf_image__load(struct elf_image *image, uint64_t address, uint64_t most, size_t *size);

/* Whether a search ends with the LENGTH bytes at BYTES, which are AT in what is searched. BYTES[-1]
 * is the byte before them, 0 where that begins. */
typedef bool (*elf_image__visit)(const uint8_t *bytes, size_t length, uint64_t at, void *context);

/* Calls VISIT with what the file has for each segment that is WRITABLE or not, in blocks that
 * overlap by 64 bytes or more, until it returns true; returns whether it did. */
bool elf_image__search(struct elf_image *image, bool writable, elf_image__visit visit,
		       void *context);

/* The build ID in lower case, two digits a byte; false where the file has none, or one of more than
 * 20 bytes. */
bool elf_image__build_id(const struct elf_image *image, char hex[ELF_BUILD_ID_HEX_BYTES]);

#endif
