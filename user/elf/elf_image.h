/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF file of a target: its symbols, its segments, its build ID. */
#ifndef PYBPFPROF_ELF_IMAGE_H
#define PYBPFPROF_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The hexadecimal digits of a SHA-1, and a NUL. */
#define ELF_BUILD_ID_HEX_BYTES 41

/* The cache of symbols has names up to this length, and this many.  Callers look for about 15. */
#define ELF_NAME_BYTES_MAX    64
#define ELF_KNOWN_SYMBOLS_MAX 24

/* How much may be read from the files of one process in one search. */
struct elf_budget {
	pid_t pid;
	uint64_t bytes;
	bool exceeded;	 /* something was not read because the budget was too small */
	uint64_t missed; /* reader__missed() when the search began */
};

/* Only user/elf/ sets these; others read what is above SECTIONS. */
struct elf_image {
	bool narrow;	      /* a 32-bit file; what is read of it is converted to 64-bit entries */
	Elf64_Ehdr header;    /* with the machine that it is for */
	Elf64_Phdr *segments; /* HEADER.e_phnum of them, not checked */
	uint32_t note;	      /* for the caller's own use, 0 at first */
	Elf64_Shdr *sections; /* NULL if there are none */
	int fd;
	pid_t pid; /* reader.h charges reads to this process */
	uint64_t size;
	struct elf_budget *budget;
	/* From PT_DYNAMIC, as file offsets; 0 if missing. */
	struct {
		uint64_t symbols, strings, strings_size, gnu_hash;
		bool debug; /* DT_DEBUG, which linkers add to programs and not to libraries */
	} dynamic;
	/* Answers to earlier searches. */
	struct {
		char name[ELF_NAME_BYTES_MAX];
		uint64_t address;
		bool found;
	} known[ELF_KNOWN_SYMBOLS_MAX];
	size_t known_count;
};

/* Takes ownership of FD.  The file may be for any machine.  NULL if it is not an ELF file with
 * segments, or is big-endian.  BUDGET must outlive the image, or be replaced with
 * elf_image__set_budget. */
struct elf_image *elf_image__open(int fd, struct elf_budget *budget);
void elf_image__close(struct elf_image *image);

/* Finds an exported symbol.  *ADDRESS is the address in the file.  Uses DT_GNU_HASH, which needs no
 * section headers; without it, the section .dynsym. */
bool elf_image__exported_symbol(struct elf_image *image, const char *name, uint64_t *address);

/* Same, but also looks in .symtab.  Remembers the answer. */
bool elf_image__symbol(struct elf_image *image, const char *name, uint64_t *address);

/* Finds the section NAME.  *ADDRESS is its address in the file. */
bool elf_image__section(struct elf_image *image, const char *name, uint64_t *address);

/* The load bias of a file with COUNT SEGMENTS: *BIAS is what to add to an address in the file.  A
 * part of the file that begins at FILE_OFFSET is mapped at START, executable or writable.  False if
 * no such segment has that part. */
bool elf_segments__bias(const Elf64_Phdr *segments, size_t count, uint64_t start,
			uint64_t file_offset, bool executable, uint64_t *bias);

/* Whether it is a 64-bit file for this machine. */
bool elf_image__is_native(const struct elf_image *image);

/* Whether it was linked as a program, static or dynamic, and not as a library. */
bool elf_image__is_program(const struct elf_image *image);

/* Copies the first SIZE bytes of the file to BYTES.  *ADDRESS is their address in the file.  False
 * if no segment loads them. */
bool elf_image__first_bytes(const struct elf_image *image, void *bytes, size_t size,
			    uint64_t *address);

/* Copies the LENGTH bytes that the file has at ADDRESS.  False if it does not have all of them. */
bool elf_image__initial_bytes(const struct elf_image *image, uint64_t address, void *bytes,
			      size_t length);

/* Reads the file from ADDRESS to the end of the section that begins there.  Without section
 * headers, reads to the end of the segment, at most MOST bytes.  *SIZE is the number of bytes.  The
 * caller frees.  NULL if there is nothing, or more than MOST bytes. */
void *elf_image__load(struct elf_image *image, uint64_t address, uint64_t most, size_t *size);

/* Visits LENGTH bytes, which are at offset AT of what is searched.  Returns true to stop.
 * BYTES[-1] is the byte before them, or 0 at the start. */
typedef bool (*elf_image__visit)(const uint8_t *bytes, size_t length, uint64_t at, void *context);

/* Visits the contents of all segments that are WRITABLE, or of all others, in blocks that overlap
 * by at least 64 bytes.  Returns whether VISIT stopped it. */
bool elf_image__search(struct elf_image *image, bool writable, elf_image__visit visit,
		       void *context);

/* The build ID as lower-case hexadecimal digits.  False if there is none, or one longer than 20
 * bytes. */
bool elf_image__build_id(const struct elf_image *image, char hex[ELF_BUILD_ID_HEX_BYTES]);

#endif
