// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <string.h>

#include "target/elf_format.h"

static void widen_header(const void *narrow, void *wide)
{
	Elf32_Ehdr from;
	Elf64_Ehdr to;

	memcpy(&from, narrow, sizeof(from));
	to = (Elf64_Ehdr){ .e_type = from.e_type,
			   .e_machine = from.e_machine,
			   .e_version = from.e_version,
			   .e_entry = from.e_entry,
			   .e_phoff = from.e_phoff,
			   .e_shoff = from.e_shoff,
			   .e_flags = from.e_flags,
			   .e_ehsize = from.e_ehsize,
			   .e_phentsize = from.e_phentsize,
			   .e_phnum = from.e_phnum,
			   .e_shentsize = from.e_shentsize,
			   .e_shnum = from.e_shnum,
			   .e_shstrndx = from.e_shstrndx };
	memcpy(to.e_ident, from.e_ident, sizeof(to.e_ident));
	memcpy(wide, &to, sizeof(to));
}

static void widen_segment(const void *narrow, void *wide)
{
	Elf32_Phdr from;
	Elf64_Phdr to;

	memcpy(&from, narrow, sizeof(from));
	to = (Elf64_Phdr){ .p_type = from.p_type,
			   .p_flags = from.p_flags,
			   .p_offset = from.p_offset,
			   .p_vaddr = from.p_vaddr,
			   .p_paddr = from.p_paddr,
			   .p_filesz = from.p_filesz,
			   .p_memsz = from.p_memsz,
			   .p_align = from.p_align };
	memcpy(wide, &to, sizeof(to));
}

static void widen_dynamic(const void *narrow, void *wide)
{
	Elf32_Dyn from;
	Elf64_Dyn to;

	memcpy(&from, narrow, sizeof(from));
	to = (Elf64_Dyn){ .d_tag = from.d_tag, .d_un.d_val = from.d_un.d_val };
	memcpy(wide, &to, sizeof(to));
}

static void widen_section(const void *narrow, void *wide)
{
	Elf32_Shdr from;
	Elf64_Shdr to;

	memcpy(&from, narrow, sizeof(from));
	to = (Elf64_Shdr){ .sh_name = from.sh_name,
			   .sh_type = from.sh_type,
			   .sh_flags = from.sh_flags,
			   .sh_addr = from.sh_addr,
			   .sh_offset = from.sh_offset,
			   .sh_size = from.sh_size,
			   .sh_link = from.sh_link,
			   .sh_info = from.sh_info,
			   .sh_addralign = from.sh_addralign,
			   .sh_entsize = from.sh_entsize };
	memcpy(wide, &to, sizeof(to));
}

static void widen_symbol(const void *narrow, void *wide)
{
	Elf32_Sym from;
	Elf64_Sym to;

	memcpy(&from, narrow, sizeof(from));
	to = (Elf64_Sym){ .st_name = from.st_name,
			  .st_info = from.st_info,
			  .st_other = from.st_other,
			  .st_shndx = from.st_shndx,
			  .st_value = from.st_value,
			  .st_size = from.st_size };
	memcpy(wide, &to, sizeof(to));
}

const struct elf_format ELF_HEADER = { sizeof(Elf64_Ehdr), sizeof(Elf32_Ehdr), widen_header };
const struct elf_format ELF_SEGMENT = { sizeof(Elf64_Phdr), sizeof(Elf32_Phdr), widen_segment };
const struct elf_format ELF_DYNAMIC = { sizeof(Elf64_Dyn), sizeof(Elf32_Dyn), widen_dynamic };
const struct elf_format ELF_SECTION = { sizeof(Elf64_Shdr), sizeof(Elf32_Shdr), widen_section };
const struct elf_format ELF_SYMBOL = { sizeof(Elf64_Sym), sizeof(Elf32_Sym), widen_symbol };

size_t elf_format__size(const struct elf_format *format, bool narrow)
{
	return narrow ? format->narrow_size : format->size;
}

void elf_format__read(const struct elf_format *format, bool narrow, const void *bytes, void *wide)
{
	if (narrow)
		format->widen(bytes, wide);
	else
		memcpy(wide, bytes, format->size);
}
