// SPDX-License-Identifier: BSD-2-Clause
/*
 * The segment .eh_frame_hdr of a loaded file gives the address of .eh_frame.  Only section headers
 * give its size, but an entry of length 0 ends it, before the end of its segment.
 *
 * An .eh_frame is a list of entries.  A CIE holds the data that functions share.  An FDE describes
 * one function and refers back to its CIE.  Its instructions change the rules from one machine
 * instruction to the next.
 *
 * All FDEs are collected and sorted first, because linkers leave them in any order.  ROW_NONE fills
 * the gaps between functions.  If two functions overlap, the one that begins first wins.  Each byte
 * belongs to one entry and is read once, so the time is linear in the size of the file.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/xalloc.h"
#include "unwind/cfi_parts.h"

#define HEADER_VERSION 1

/* A version, the encodings of three numbers, and the first number: where .eh_frame is. */
#define HEADER_BYTES (4 + sizeof(uint64_t))

/* A length of 64 bits follows. */
#define LENGTH_EXTENDED 0xffffffff

struct cie {
	uint64_t at; /* its place in the section; first, for look-ups */
	struct cfi_shared shared;
};

struct fde {
	uint64_t start, end;
	uint32_t instructions, instructions_end; /* places in the section */
	uint32_t cie;
};

struct entries {
	struct cfi_reader reader;
	struct cie *cies; /* in the order of their places */
	size_t cie_count, cie_capacity;
	struct fde *fdes;
	size_t fde_count, fde_capacity;
};

static const struct cfi_machine machines[] = {
	{ .machine = EM_X86_64, .fp = 6, .sp = 7, .registers = 16 },
	{ .machine = EM_AARCH64, .fp = 29, .sp = 31, .registers = 32 },
};

static const struct cfi_machine *find_machine(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

/* The address of .eh_frame according to the header at HEADER_ADDRESS; 0 if that does not say. */
static uint64_t frames_address(const struct elf_image *image, uint64_t header_address)
{
	uint8_t bytes[HEADER_BYTES], encoding;
	struct cursor cursor = cursor__new(bytes, sizeof(bytes), header_address);

	if (!elf_image__initial_bytes(image, header_address, bytes, sizeof(bytes)) ||
	    cursor__take(&cursor, 1) != HEADER_VERSION)
		return 0;
	encoding = cursor__take(&cursor, 1);
	cursor__take(&cursor, 2);
	return cursor__take_pointer(&cursor, encoding);
}

void *cfi__load(struct elf_image *image, struct cfi_section *section)
{
	const Elf64_Phdr *segments = image->segments;
	uint64_t address = 0;
	size_t size;
	void *bytes;

	if (image->narrow || !find_machine(image->header.e_machine))
		return NULL;
	for (size_t i = 0; i < image->header.e_phnum && !address; i++)
		if (segments[i].p_type == PT_GNU_EH_FRAME)
			address = frames_address(image, segments[i].p_vaddr);
	if (!address)
		return NULL;
	bytes = elf_image__load(image, address, CFI_BYTES_MAX, &size);
	if (bytes)
		*section = (struct cfi_section){ .bytes = bytes,
						 .size = size,
						 .address = address,
						 .machine = image->header.e_machine };
	return bytes;
}

static uint32_t place_of(const struct entries *entries, const uint8_t *at)
{
	return (uint32_t)(at - entries->reader.section->bytes);
}

/* Reads the data of the letters of AUGMENTATION.  False: a letter, and so the rest, is unknown. */
static bool take_augmentation(struct cursor *cursor, const char *augmentation,
			      struct cfi_shared *shared)
{
	uint8_t encoding;

	for (; *augmentation && !cursor->bad; augmentation++)
		switch (*augmentation) {
		case 'R': /* the encoding of an FDE's addresses */
			shared->encoding = cursor__take(cursor, 1);
			break;
		case 'L': /* that of the address of a language's own data */
			cursor__take(cursor, 1);
			break;
		case 'P': /* a function of the language */
			encoding = cursor__take(cursor, 1);
			if (encoding != POINTER_ABSENT)
				cursor__take_pointer(cursor, encoding & POINTER_FORM);
			break;
		case 'S':
			shared->is_signal_frame = true;
			break;
		case 'B': /* return addresses are signed with another key */
		case 'G': /* a frame's memory is tagged */
			break;
		default:
			return false;
		}
	return !cursor->bad;
}

static bool take_text(struct cursor *cursor, const char **text)
{
	const uint8_t *end = memchr(cursor->at, '\0', (size_t)(cursor->end - cursor->at));

	*text = (const char *)cursor->at;
	if (end)
		cursor->at = end + 1;
	return end;
}

/* Reads the head of a CIE, and leaves CURSOR at its instructions. */
static bool take_shared(struct cursor *cursor, struct cfi_shared *shared)
{
	uint8_t version = cursor__take(cursor, 1);
	const char *augmentation;
	struct cursor data;

	if ((version != 1 && version != 3 && version != 4) || !take_text(cursor, &augmentation))
		return false;
	/* The sizes of an address and of a segment's number. */
	if (version == 4 && cursor__take(cursor, 2) != sizeof(uint64_t))
		return false;
	shared->code_factor = cursor__take_uleb(cursor);
	shared->data_factor = cursor__take_sleb(cursor);
	shared->ra_register = version == 1 ? cursor__take(cursor, 1) : cursor__take_uleb(cursor);
	if (!*augmentation)
		return !cursor->bad;
	if (*augmentation != 'z')
		return false;
	shared->has_augmentation = true;
	data = cursor__take_block(cursor, cursor__take_uleb(cursor));
	return !data.bad && take_augmentation(&data, augmentation + 1, shared);
}

static int read_cie(struct entries *entries, uint32_t at, struct cursor cursor)
{
	struct cie cie = { .at = at };
	struct cfi_shared *shared = &cie.shared;

	if (!take_shared(&cursor, shared))
		return -EBADMSG;
	if (entries->cie_count == CFI_SHARED_MAX)
		return -E2BIG;
	/* The ABI says this; CIEs repeat it. */
	if (entries->reader.machine->machine == EM_X86_64) {
		shared->initial.ra.where = AT_CFA;
		shared->initial.ra.offset = -8;
	}
	shared->is_broken = cfi_execute__shared(&entries->reader, shared, cursor);
	entries->cies = xgrow(entries->cies, &entries->cie_capacity, entries->cie_count + 1,
			      sizeof(*entries->cies));
	entries->cies[entries->cie_count++] = cie;
	return 0;
}

/* The CIE at PLACE, or NULL. */
static const struct cie *find_cie(const struct entries *entries, uint64_t place)
{
	size_t count = sorted__count_up_to(entries->cies, entries->cie_count,
					   sizeof(*entries->cies), place);
	const struct cie *last = count ? &entries->cies[count - 1] : NULL;

	return last && last->at == place ? last : NULL;
}

/* Reads an FDE.  Its CIE lies DISTANCE bytes before ID, where the FDE begins. */
static int read_fde(struct entries *entries, const uint8_t *id, uint32_t distance,
		    struct cursor cursor)
{
	uint32_t place = place_of(entries, id);
	const struct cie *cie = distance > place ? NULL : find_cie(entries, place - distance);
	struct fde fde = { 0 };
	uint8_t encoding;
	uint64_t size;

	if (!cie)
		return -EBADMSG;
	encoding = cie->shared.encoding;
	fde.start = cursor__take_pointer(&cursor, encoding);
	size = cursor__take_pointer(&cursor, encoding & POINTER_FORM);
	if (cie->shared.has_augmentation)
		cursor__take_block(&cursor, cursor__take_uleb(&cursor));
	if (cursor.bad || __builtin_add_overflow(fde.start, size, &fde.end))
		return -EBADMSG;
	/* Linkers leave the FDEs of functions that they removed. */
	if (!size || !fde.start)
		return 0;
	if (entries->fde_count == CFI_FUNCTIONS_MAX)
		return -E2BIG;
	fde.instructions = place_of(entries, cursor.at);
	fde.instructions_end = place_of(entries, cursor.end);
	fde.cie = (uint32_t)(cie - entries->cies);
	entries->fdes = xgrow(entries->fdes, &entries->fde_capacity, entries->fde_count + 1,
			      sizeof(*entries->fdes));
	entries->fdes[entries->fde_count++] = fde;
	return 0;
}

/* Collects all entries, up to one whose length is wrong. */
static int read_entries(struct entries *entries)
{
	const struct cfi_section *section = entries->reader.section;
	struct cursor cursor = cursor__new(section->bytes, section->size, section->address);
	int error = 0;

	while (cursor.at < cursor.end && error != -E2BIG) {
		uint32_t place = place_of(entries, cursor.at), distance;
		uint64_t length = cursor__take(&cursor, 4);
		struct cursor entry;
		const uint8_t *id;

		if (length == LENGTH_EXTENDED)
			length = cursor__take(&cursor, 8);
		if (!length && !cursor.bad)
			break;
		entry = cursor__take_block(&cursor, length);
		id = entry.at;
		distance = cursor__take(&entry, 4);
		if (cursor.bad || entry.bad)
			error = -EBADMSG;
		else
			error = distance ? read_fde(entries, id, distance, entry)
					 : read_cie(entries, place, entry);
		if (error)
			entries->reader.rows->broken++;
	}
	return error == -E2BIG ? error : 0;
}

/* By address; FDEs of the same address in the order of the section. */
static int compare_fdes(const void *a, const void *b)
{
	const struct fde *first = a, *second = b;

	if (first->start != second->start)
		return first->start < second->start ? -1 : 1;
	return (first->instructions > second->instructions) -
	       (first->instructions < second->instructions);
}

/* Adds the rows of FDE from address FROM on. */
static int add_function(struct entries *entries, const struct fde *fde, uint64_t from)
{
	const struct cfi_shared *shared = &entries->cies[fde->cie].shared;
	const struct cfi_section *section = entries->reader.section;
	struct cursor instructions = cursor__new(section->bytes + fde->instructions,
						 fde->instructions_end - fde->instructions,
						 section->address + fde->instructions);
	struct cfi_rows *rows = entries->reader.rows;
	size_t count = rows->count;
	int error = -EBADMSG;

	rows->function = count;
	if (!shared->is_broken)
		error = cfi_execute__function(&entries->reader, shared, instructions, fde->start,
					      from, fde->end);
	if (error != -EBADMSG)
		return error;
	rows->broken++;
	rows->count = count;
	return cfi_rule__add_row(rows, from, WORD_UNSUPPORTED);
}

static int add_functions(struct entries *entries)
{
	const uint32_t none = ROW_NUMBERED(ROW_NONE, ROW_NO_CODE);
	struct cfi_rows *rows = entries->reader.rows;
	uint64_t end = 0;
	int error = 0;

	if (!entries->fde_count)
		return 0;
	qsort(entries->fdes, entries->fde_count, sizeof(*entries->fdes), compare_fdes);
	rows->starts = xcalloc(entries->fde_count, sizeof(*rows->starts));
	for (size_t i = 0; i < entries->fde_count && !error; i++) {
		const struct fde *fde = &entries->fdes[i];

		if (!rows->start_count || rows->starts[rows->start_count - 1] != fde->start)
			rows->starts[rows->start_count++] = fde->start;
		if (end && fde->start > end)
			error = cfi_rule__add_row(rows, end, none);
		if (!error && fde->end > end) {
			error = add_function(entries, fde, fde->start > end ? fde->start : end);
			end = fde->end;
		}
	}
	return error || !end ? error : cfi_rule__add_row(rows, end, none);
}

int cfi__read(const struct cfi_section *section, struct cfi_rows *rows)
{
	const struct cfi_machine *machine = find_machine(section->machine);
	struct entries *entries;
	int error;

	if (!machine)
		return -ENOTSUP;
	if (section->size > UINT32_MAX)
		return -E2BIG;
	entries = xcalloc(1, sizeof(*entries));
	entries->reader.section = section;
	entries->reader.machine = machine;
	entries->reader.rows = rows;
	error = read_entries(entries);
	if (!error)
		error = add_functions(entries);
	free(entries->cies);
	free(entries->fdes);
	free(entries);
	return error;
}

void cfi_rows__free(struct cfi_rows *rows)
{
	free(rows->all);
	free(rows->rules);
	free(rows->starts);
	*rows = (struct cfi_rows){ 0 };
}
