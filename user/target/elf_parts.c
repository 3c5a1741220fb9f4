// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target chooses its files, and may cut or change them while they are read.  So
 * nothing is mapped, every number of the file is an offset that is checked here
 * against the file's size, every size has a bound of ours, and every chain ends.
 * What may be long is read in blocks, and from a budget that all files share.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "target/elf_parts.h"
#include "target/target_files.h"

bool elf_parts__read(const struct elf_image *image, uint64_t offset, void *buffer, uint64_t length)
{
	if (offset > image->size || length > image->size - offset)
		return false;
	return target_file__read(image->pid, image->fd, buffer, length, offset);
}

/* Whether the file has the part, and it may be read. */
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

/* IMAGE's until take_room() or elf_parts__free_room(). */
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

void elf_parts__free_room(struct elf_image *image)
{
	free(take_room(image));
}

void *elf_parts__load(struct elf_image *image, uint64_t offset, uint64_t length, uint64_t most)
{
	if (length > most || !spend(image, offset, length))
		return NULL;
	if (elf_parts__read(image, offset, make_room(image, length), length))
		return take_room(image);
	elf_parts__free_room(image);
	return NULL;
}

size_t elf_parts__size_of(const struct elf_image *image, const struct elf_format *format)
{
	return elf_format__size(format, elf_image__is_narrow(image));
}

void *elf_parts__load_table(struct elf_image *image, const struct elf_format *format,
			    uint64_t offset, size_t count)
{
	size_t size = elf_parts__size_of(image, format);
	uint8_t *bytes = elf_parts__load(image, offset, count * size, UINT16_MAX * size), *table;

	if (!bytes || !elf_image__is_narrow(image))
		return bytes;
	table = xcalloc(count, format->size);
	for (size_t i = 0; i < count; i++)
		format->widen(bytes + i * size, table + i * format->size);
	free(bytes);
	return table;
}

bool elf_parts__visit(struct elf_image *image, uint64_t offset, uint64_t length,
		      bool (*visit)(const uint8_t *bytes, size_t length, uint64_t at,
				    void *context),
		      void *context)
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
	elf_parts__free_room(image);
	return stop;
}
