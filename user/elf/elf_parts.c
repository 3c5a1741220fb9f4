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
#include "reading/reader.h"
#include "reading/target_files.h"

/* An entry in a 64-bit file, and in a 32-bit file, with the fields of the latter that are read. */
struct elf_format {
	size_t size, narrow_size;
	struct {
		uint8_t from, bytes, to;
	} fields[10];
};

#define FORMAT(entry, ...)                                    \
	{                                                     \
		sizeof(Elf64_##entry), sizeof(Elf32_##entry), \
		{                                             \
			__VA_ARGS__                           \
		}                                             \
	}
#define FIELD(entry, field)                                                             \
	{                                                                               \
		offsetof(Elf32_##entry, field), sizeof(((Elf32_##entry *)NULL)->field), \
			offsetof(Elf64_##entry, field)                                  \
	}

/* clang-format off */
const struct elf_format ELF_HEADER = FORMAT(Ehdr,
	FIELD(Ehdr, e_type), FIELD(Ehdr, e_machine), FIELD(Ehdr, e_phoff), FIELD(Ehdr, e_shoff),
	FIELD(Ehdr, e_phentsize), FIELD(Ehdr, e_phnum), FIELD(Ehdr, e_shentsize),
	FIELD(Ehdr, e_shnum), FIELD(Ehdr, e_shstrndx));
const struct elf_format ELF_SEGMENT = FORMAT(Phdr,
	FIELD(Phdr, p_type), FIELD(Phdr, p_flags), FIELD(Phdr, p_offset), FIELD(Phdr, p_vaddr),
	FIELD(Phdr, p_filesz), FIELD(Phdr, p_memsz), FIELD(Phdr, p_align));
const struct elf_format ELF_DYNAMIC = FORMAT(Dyn,
	FIELD(Dyn, d_tag), FIELD(Dyn, d_un));
const struct elf_format ELF_SECTION = FORMAT(Shdr,
	FIELD(Shdr, sh_name), FIELD(Shdr, sh_type), FIELD(Shdr, sh_addr), FIELD(Shdr, sh_offset),
	FIELD(Shdr, sh_size), FIELD(Shdr, sh_link));
const struct elf_format ELF_SYMBOL = FORMAT(Sym,
	FIELD(Sym, st_name), FIELD(Sym, st_info), FIELD(Sym, st_shndx), FIELD(Sym, st_value),
	FIELD(Sym, st_size));
/* clang-format on */

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

void *elf_parts__load(struct elf_image *image, uint64_t offset, uint64_t length, uint64_t most)
{
	void *bytes;

	if (length > most || !spend(image, offset, length))
		return NULL;
	bytes = reader__lend(xcalloc(1, length));
	if (elf_parts__read(image, offset, bytes, length))
		return reader__take_back(bytes);
	free(reader__take_back(bytes));
	return NULL;
}

size_t elf_parts__size_of(const struct elf_image *image, const struct elf_format *format)
{
	return image->narrow ? format->narrow_size : format->size;
}

void elf_parts__widen(const struct elf_image *image, const struct elf_format *format,
		      const void *bytes, void *wide)
{
	const uint8_t *from = bytes;
	uint8_t *to = wide;

	if (!image->narrow) {
		memcpy(to, from, format->size);
		return;
	}
	memset(to, 0, format->size);
	for (size_t i = 0; i < sizeof(format->fields) / sizeof(format->fields[0]); i++)
		memcpy(to + format->fields[i].to, from + format->fields[i].from,
		       format->fields[i].bytes);
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
		elf_parts__widen(image, format, bytes + i * size, table + i * format->size);
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
	block = (uint8_t *)reader__lend(xcalloc(1, 1 + READ_BYTES)) + 1;
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
	free(reader__take_back(block - 1));
	return stop;
}
