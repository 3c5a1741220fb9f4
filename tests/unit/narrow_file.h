/* SPDX-License-Identifier: BSD-2-Clause */
/* A small 32-bit ELF file that has one of each structure that is read from such files. */
#ifndef PYBPFPROF_NARROW_FILE_H
#define PYBPFPROF_NARROW_FILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "architecture/architecture.h"

#define NARROW_BASE	0x8048000
#define NARROW_CONSTANT "cpython-311\0003.11.2"
#define NARROW_SECTION	".constants"
#define NARROW_INNER	"inner" /* the symbol that is not exported */

struct narrow_file {
	Elf32_Ehdr header;
	Elf32_Phdr segments[2];
	Elf32_Dyn dynamic[6];
	Elf32_Sym exported[2], inner[2];
	char names[64], inner_names[16], section_names[16];
	struct {
		uint32_t buckets, first, filter_words, filter_shift, filter, bucket, chain;
	} gnu_hash;
	Elf32_Shdr sections[4];
	char constants[64];
};

#define NARROW_OFFSET(member)  ((uint32_t)offsetof(struct narrow_file, member))
#define NARROW_ADDRESS(member) (NARROW_BASE + NARROW_OFFSET(member))

static inline uint32_t narrow_hash(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (uint8_t)*name++;
	return hash;
}

/* One loadable segment covers the whole file. */
static inline void narrow_file__set_segments(struct narrow_file *file)
{
	file->header = (Elf32_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32,
						  ELFDATA2LSB, EV_CURRENT },
				     .e_type = ET_EXEC,
				     .e_machine = ARCHITECTURE.narrow_machine,
				     .e_phoff = NARROW_OFFSET(segments),
				     .e_shoff = NARROW_OFFSET(sections),
				     .e_phentsize = sizeof(*file->segments),
				     .e_phnum = 2,
				     .e_shentsize = sizeof(*file->sections),
				     .e_shnum = 4,
				     .e_shstrndx = 3 };
	file->segments[0] = (Elf32_Phdr){ .p_type = PT_LOAD,
					  .p_flags = PF_R | PF_X,
					  .p_vaddr = NARROW_BASE,
					  .p_filesz = sizeof(*file) };
	file->segments[1] = (Elf32_Phdr){ .p_type = PT_DYNAMIC,
					  .p_offset = NARROW_OFFSET(dynamic),
					  .p_filesz = sizeof(file->dynamic) };
}

static inline void narrow_file__set_symbols(struct narrow_file *file, const char *name)
{
	const Elf32_Dyn dynamic[] = {
		{ DT_SYMTAB, { NARROW_ADDRESS(exported) } },
		{ DT_STRTAB, { NARROW_ADDRESS(names) } },
		{ DT_STRSZ, { sizeof(file->names) } },
		{ DT_GNU_HASH, { NARROW_ADDRESS(gnu_hash) } },
	};

	memcpy(file->dynamic, dynamic, sizeof(dynamic));
	strncpy(file->names + 1, name, sizeof(file->names) - 2);
	strcpy(file->inner_names + 1, NARROW_INNER);
	file->exported[1] = (Elf32_Sym){ 1, NARROW_ADDRESS(constants), 4, 0, 0, 1 };
	file->inner[1] = (Elf32_Sym){ 1, NARROW_ADDRESS(names), 4, 0, 0, 1 };
	file->gnu_hash.buckets = file->gnu_hash.first = file->gnu_hash.filter_words = 1;
	file->gnu_hash.bucket = 1;
	file->gnu_hash.filter = UINT32_MAX;
	file->gnu_hash.chain = narrow_hash(name) | 1;
}

/* Fills in FILE, which exports NAME at the address of its constants. */
static inline void narrow_file__make(struct narrow_file *file, const char *name)
{
	memset(file, 0, sizeof(*file));
	narrow_file__set_segments(file);
	narrow_file__set_symbols(file, name);
	memcpy(file->constants, NARROW_CONSTANT, sizeof(NARROW_CONSTANT));
	strcpy(file->section_names + 1, NARROW_SECTION);
	file->sections[0] = (Elf32_Shdr){ .sh_type = SHT_SYMTAB,
					  .sh_offset = NARROW_OFFSET(inner),
					  .sh_size = sizeof(file->inner),
					  .sh_link = 1 };
	file->sections[1] = (Elf32_Shdr){ .sh_offset = NARROW_OFFSET(inner_names),
					  .sh_size = sizeof(file->inner_names) };
	file->sections[2] = (Elf32_Shdr){ .sh_name = 1, .sh_addr = NARROW_ADDRESS(constants) };
	file->sections[3] = (Elf32_Shdr){ .sh_offset = NARROW_OFFSET(section_names),
					  .sh_size = sizeof(file->section_names) };
}

#endif
