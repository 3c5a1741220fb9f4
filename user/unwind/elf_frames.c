// SPDX-License-Identifier: BSD-2-Clause
/*
 * A segment of a loaded file, .eh_frame_hdr, says where its .eh_frame begins.  Only section headers
 * say how long that is, but an entry of length 0 ends it, before the end of its segment.
 */
#include "unwind/elf_frames.h"

#include "unwind/cursor.h"

#define HEADER_VERSION 1

/* A version, the encodings of three numbers, and the first number: where .eh_frame is. */
#define HEADER_BYTES (4 + sizeof(uint64_t))

/* The address of .eh_frame according to the header at HEADER_ADDRESS; 0 if that does not say. */
static uint64_t frames_address(const struct elf_image *image, uint64_t header_address)
{
	uint8_t bytes[HEADER_BYTES], encoding;
	struct cursor cursor = { bytes, bytes + sizeof(bytes), false };

	if (!elf_image__initial_bytes(image, header_address, bytes, sizeof(bytes)) ||
	    cursor__take(&cursor, 1) != HEADER_VERSION)
		return 0;
	encoding = cursor__take(&cursor, 1);
	cursor__take(&cursor, 2);
	return cursor__take_pointer(&cursor, encoding, header_address + 4);
}

void *elf_frames__load(struct elf_image *image, struct cfi_section *section)
{
	size_t count, size;
	const Elf64_Phdr *segments = elf_image__segments(image, &count);
	uint64_t address = 0;
	void *bytes;

	if (elf_image__is_narrow(image) || !cfi__knows(elf_image__machine(image)))
		return NULL;
	for (size_t i = 0; i < count && !address; i++)
		if (segments[i].p_type == PT_GNU_EH_FRAME)
			address = frames_address(image, segments[i].p_vaddr);
	if (!address)
		return NULL;
	bytes = elf_image__load(image, address, ELF_FRAMES_BYTES_MAX, &size);
	if (bytes)
		*section = (struct cfi_section){ .bytes = bytes,
						 .size = size,
						 .address = address,
						 .machine = elf_image__machine(image) };
	return bytes;
}
