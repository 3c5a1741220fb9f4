// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target chooses its files, and may truncate or change them while they are read.  So no file is
 * mapped into memory.  Every offset from a file is checked here against the file's size.  Every
 * size has a limit, and every chain ends.  What may be long is read in blocks, and charged to a
 * budget that all files of a search share.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "elf/elf_parts.h"
#include "reading/target_files.h"

struct elf_format {
	size_t size, narrow_size; /* of an entry in a 64-bit file and in a 32-bit file */
	void (*widen)(const void *narrow, void *wide);
};

static void widen_header(const void *narrow, void *wide)
{
	Elf32_Ehdr from;

	memcpy(&from, narrow, sizeof(from));
	*(Elf64_Ehdr *)wide = (Elf64_Ehdr){ .e_type = from.e_type,
					    .e_machine = from.e_machine,
					    .e_phoff = from.e_phoff,
					    .e_shoff = from.e_shoff,
					    .e_phentsize = from.e_phentsize,
					    .e_phnum = from.e_phnum,
					    .e_shentsize = from.e_shentsize,
					    .e_shnum = from.e_shnum,
					    .e_shstrndx = from.e_shstrndx };
}

static void widen_segment(const void *narrow, void *wide)
{
	Elf32_Phdr from;

	memcpy(&from, narrow, sizeof(from));
	*(Elf64_Phdr *)wide = (Elf64_Phdr){ .p_type = from.p_type,
					    .p_flags = from.p_flags,
					    .p_offset = from.p_offset,
					    .p_vaddr = from.p_vaddr,
					    .p_filesz = from.p_filesz,
					    .p_memsz = from.p_memsz,
					    .p_align = from.p_align };
}

static void widen_dynamic(const void *narrow, void *wide)
{
	Elf32_Dyn from;

	memcpy(&from, narrow, sizeof(from));
	*(Elf64_Dyn *)wide = (Elf64_Dyn){ .d_tag = from.d_tag, .d_un.d_val = from.d_un.d_val };
}

static void widen_section(const void *narrow, void *wide)
{
	Elf32_Shdr from;

	memcpy(&from, narrow, sizeof(from));
	*(Elf64_Shdr *)wide = (Elf64_Shdr){ .sh_name = from.sh_name,
					    .sh_type = from.sh_type,
					    .sh_addr = from.sh_addr,
					    .sh_offset = from.sh_offset,
					    .sh_size = from.sh_size,
					    .sh_link = from.sh_link };
}

static void widen_symbol(const void *narrow, void *wide)
{
	Elf32_Sym from;

	memcpy(&from, narrow, sizeof(from));
	*(Elf64_Sym *)wide = (Elf64_Sym){ .st_name = from.st_name,
					  .st_info = from.st_info,
					  .st_shndx = from.st_shndx,
					  .st_value = from.st_value,
					  .st_size = from.st_size };
}

const struct elf_format ELF_HEADER = { sizeof(Elf64_Ehdr), sizeof(Elf32_Ehdr), widen_header };
const struct elf_format ELF_SEGMENT = { sizeof(Elf64_Phdr), sizeof(Elf32_Phdr), widen_segment };
const struct elf_format ELF_DYNAMIC = { sizeof(Elf64_Dyn), sizeof(Elf32_Dyn), widen_dynamic };
const struct elf_format ELF_SECTION = { sizeof(Elf64_Shdr), sizeof(Elf32_Shdr), widen_section };
const struct elf_format ELF_SYMBOL = { sizeof(Elf64_Sym), sizeof(Elf32_Sym), widen_symbol };

bool elf_parts__read(const struct elf_image *image, uint64_t offset, void *buffer, uint64_t length)
{
	if (offset > image->size || length > image->size - offset)
		return false;
	return target_file__read(image->pid, image->fd, buffer, length, offset);
}

/* Charges a part to the budget.  False if the file does not have it, or the budget is too small. */
static bool spend(const struct elf_image *image, uint64_t offset, uint64_t length)
{
	if (!length || offset > image->size || length > image->size - offset)
		return false;
	if (length > image->budget->bytes) {
		image->budget->exceeded = true;
		return false;
	}
	image->budget->bytes -= length;
	return true;
}

/* IMAGE owns the buffer until take_room() or elf_image__close(): the caller may be abandoned while
 * it reads. */
static uint8_t *make_room(struct elf_image *image, size_t size)
{
	image->room = xcalloc(1, size);
	return image->room;
}

static void *take_room(struct elf_image *image)
{
	void *room = image->room;

	image->room = NULL;
	return room;
}

void *elf_parts__load(struct elf_image *image, uint64_t offset, uint64_t length, uint64_t most)
{
	if (length > most || !spend(image, offset, length))
		return NULL;
	if (elf_parts__read(image, offset, make_room(image, length), length))
		return take_room(image);
	free(take_room(image));
	return NULL;
}

size_t elf_parts__size_of(const struct elf_image *image, const struct elf_format *format)
{
	return image->narrow ? format->narrow_size : format->size;
}

void elf_parts__widen(const struct elf_image *image, const struct elf_format *format,
		      const void *bytes, void *wide)
{
	if (image->narrow)
		format->widen(bytes, wide);
	else
		memcpy(wide, bytes, format->size);
}

void *elf_parts__load_table(struct elf_image *image, const struct elf_format *format,
			    uint64_t offset, size_t count)
{
	size_t size = elf_parts__size_of(image, format);
	uint8_t *bytes = elf_parts__load(image, offset, count * size, UINT16_MAX * size), *table;

	if (!bytes || !image->narrow)
		return bytes;
	table = xcalloc(count, format->size);
	for (size_t i = 0; i < count; i++)
		format->widen(bytes + i * size, table + i * format->size);
	free(bytes);
	return table;
}

bool elf_parts__visit(struct elf_image *image, uint64_t offset, uint64_t length,
		      elf_image__visit visit, void *context)
{
	uint8_t *block;
	bool stop = false;
	uint64_t at = 0;

	if (!spend(image, offset, length))
		return false;
	block = make_room(image, 1 + READ_BYTES) + 1;
	while (!stop) {
		size_t size = length - at < READ_BYTES ? length - at : READ_BYTES;

		if (!elf_parts__read(image, offset + at, block, size))
			break;
		stop = visit(block, size, at, context);
		if (at + size == length)
			break;
		at += size - OVERLAP_BYTES;
		block[-1] = block[size - OVERLAP_BYTES - 1];
	}
	free(take_room(image));
	return stop;
}
