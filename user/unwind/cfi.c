// SPDX-License-Identifier: BSD-2-Clause
/*
 * An .eh_frame is a list of entries.  A CIE has what several functions share; an FDE has the
 * instructions of one function: from its first address on they say how the rule for a register
 * changes from one machine instruction to the next.  An FDE refers back to its CIE.
 *
 * All FDEs are collected and sorted first, as linkers may leave them in any order.  Where there
 * is none, ROW_NONE stands; of two that overlap, the one that begins first counts.  Each byte
 * belongs to one entry and is read once, so that no file takes longer than its size.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/xalloc.h"
#include "unwind/cfi_parts.h"

/* An entry's length is one of 64 bits. */
#define LENGTH_EXTENDED 0xffffffff

struct cie {
	uint64_t at; /* first, as they are looked up by it: its place in the section */
	struct cfi_shared shared;
};

struct fde {
	uint64_t start, end;
	uint32_t instructions, instructions_end; /* places in the section */
	uint32_t cie;
};

/* The entries of a section, with all that is known of them. */
struct entries {
	struct cfi_reader reader;
	struct cie *cies; /* by place */
	size_t cie_count, cie_capacity;
	struct fde *fdes;
	size_t fde_count, fde_capacity;
	size_t last_cie; /* that an FDE referred to */
	bool are_sorted;
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

bool cfi__knows(uint16_t machine)
{
	return find_machine(machine);
}

/* The address of CURSOR's next byte. */
static uint64_t address_of(const struct entries *entries, const struct cursor *cursor)
{
	const struct cfi_section *section = entries->reader.section;

	return section->address + (uint64_t)(cursor->at - section->bytes);
}

static uint32_t place_of(const struct entries *entries, const uint8_t *at)
{
	return (uint32_t)(at - entries->reader.section->bytes);
}

/* Reads what the letters of AUGMENTATION stand for.  With an unknown one, the rest is unknown. */
static bool take_augmentation(const struct entries *entries, struct cursor *cursor,
			      const char *augmentation, struct cfi_shared *shared)
{
	uint8_t encoding;

	for (; *augmentation && !cursor->bad; augmentation++)
		switch (*augmentation) {
		case 'R': /* how an FDE's addresses are written */
			shared->encoding = cursor__take(cursor, 1);
			break;
		case 'L': /* how the address of a language's own data is */
			cursor__take(cursor, 1);
			break;
		case 'P': /* a function of the language */
			encoding = cursor__take(cursor, 1);
			if (encoding != POINTER_ABSENT)
				cursor__take_pointer(cursor, encoding & POINTER_FORM,
						     address_of(entries, cursor));
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

/* What a CIE says before its instructions, to which CURSOR is moved. */
static bool take_shared(const struct entries *entries, struct cursor *cursor,
			struct cfi_shared *shared)
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
	return !data.bad && take_augmentation(entries, &data, augmentation + 1, shared);
}

static int read_cie(struct entries *entries, uint32_t at, struct cursor cursor)
{
	struct cie cie = { .at = at };
	struct cfi_shared *shared = &cie.shared;

	if (!take_shared(entries, &cursor, shared))
		return -EBADMSG;
	if (entries->cie_count == CFI_SHARED_MAX)
		return -E2BIG;
	/* So the ABI says; CIEs say it once more. */
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

/* The CIE at PLACE, among those that were read. */
static bool find_cie(struct entries *entries, uint64_t place)
{
	size_t count;

	if (entries->cie_count && entries->cies[entries->last_cie].at == place)
		return true;
	count = sorted__count_up_to(entries->cies, entries->cie_count, sizeof(*entries->cies),
				    place);
	if (!count || entries->cies[count - 1].at != place)
		return false;
	entries->last_cie = count - 1;
	return true;
}

/* Reads an FDE, which begins with ID.  Its CIE lies DISTANCE bytes before that. */
static int read_fde(struct entries *entries, const uint8_t *id, uint32_t distance,
		    struct cursor cursor)
{
	const struct cfi_shared *shared;
	uint64_t size;
	struct fde fde = { 0 };

	if (distance > place_of(entries, id) ||
	    !find_cie(entries, place_of(entries, id) - distance))
		return -EBADMSG;
	shared = &entries->cies[entries->last_cie].shared;
	fde.start = cursor__take_pointer(&cursor, shared->encoding, address_of(entries, &cursor));
	size = cursor__take_pointer(&cursor, shared->encoding & POINTER_FORM, 0);
	if (shared->has_augmentation)
		cursor__take_block(&cursor, cursor__take_uleb(&cursor));
	if (cursor.bad || __builtin_add_overflow(fde.start, size, &fde.end))
		return -EBADMSG;
	/* A linker leaves those of functions that it removed. */
	if (!size || !fde.start)
		return 0;
	if (entries->fde_count == CFI_FUNCTIONS_MAX)
		return -E2BIG;
	fde.instructions = place_of(entries, cursor.at);
	fde.instructions_end = place_of(entries, cursor.end);
	fde.cie = (uint32_t)entries->last_cie;
	if (entries->fde_count && entries->fdes[entries->fde_count - 1].start > fde.start)
		entries->are_sorted = false;
	entries->fdes = xgrow(entries->fdes, &entries->fde_capacity, entries->fde_count + 1,
			      sizeof(*entries->fdes));
	entries->fdes[entries->fde_count++] = fde;
	return 0;
}

/* Collects all entries.  What comes after one whose length is wrong is unknown. */
static int read_entries(struct entries *entries)
{
	const struct cfi_section *section = entries->reader.section;
	struct cursor cursor = { section->bytes, section->bytes + section->size, false };
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

/* By address, and those of one address in the section's order. */
static int compare_fdes(const void *a, const void *b)
{
	const struct fde *first = *(const struct fde *const *)a;
	const struct fde *second = *(const struct fde *const *)b;

	if (first->start != second->start)
		return first->start < second->start ? -1 : 1;
	return first < second ? -1 : first > second;
}

/* The FDEs in that order; the caller frees. */
static const struct fde **sort_fdes(const struct entries *entries)
{
	const struct fde **sorted = xcalloc(entries->fde_count, sizeof(*sorted));

	for (size_t i = 0; i < entries->fde_count; i++)
		sorted[i] = &entries->fdes[i];
	if (!entries->are_sorted)
		qsort(sorted, entries->fde_count, sizeof(*sorted), compare_fdes);
	return sorted;
}

int cfi_rows__add(struct cfi_rows *rows, uint64_t address, uint32_t word)
{
	if (rows->count > rows->function && rows->all[rows->count - 1].word == word)
		return 0;
	if (rows->count == CFI_ROWS_MAX)
		return -E2BIG;
	if (rows->count == rows->capacity)
		rows->all = xgrow(rows->all, &rows->capacity, rows->count + 1, sizeof(*rows->all));
	rows->all[rows->count++] = (struct cfi_row){ address, word };
	return 0;
}

/* Adds the rows of FDE for the addresses from FROM on. */
static int add_function(struct entries *entries, const struct fde *fde, uint64_t from)
{
	const struct cfi_shared *shared = &entries->cies[fde->cie].shared;
	const uint8_t *bytes = entries->reader.section->bytes;
	struct cursor instructions = { bytes + fde->instructions, bytes + fde->instructions_end,
				       false };
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
	return cfi_rows__add(rows, from, cfi_rule__unsupported(&entries->reader));
}

static int add_functions(struct entries *entries)
{
	const struct fde **sorted = sort_fdes(entries);
	const uint32_t none = ROW_NUMBERED(ROW_NONE, ROW_NO_CODE);
	struct cfi_rows *rows = entries->reader.rows;
	uint64_t end = 0;
	int error = 0;

	rows->starts = xcalloc(entries->fde_count, sizeof(*rows->starts));
	for (size_t i = 0; i < entries->fde_count && !error; i++) {
		const struct fde *fde = sorted[i];

		if (!rows->start_count || rows->starts[rows->start_count - 1] != fde->start)
			rows->starts[rows->start_count++] = fde->start;
		if (end && fde->start > end)
			error = cfi_rows__add(rows, end, none);
		if (!error && fde->end > end) {
			error = add_function(entries, fde, fde->start > end ? fde->start : end);
			end = fde->end;
		}
	}
	free(sorted);
	return error || !end ? error : cfi_rows__add(rows, end, none);
}

int cfi__read(const struct cfi_section *section, struct cfi_rows *rows)
{
	struct entries *entries;
	int error;

	if (!cfi__knows(section->machine))
		return -ENOTSUP;
	if (section->size > UINT32_MAX)
		return -E2BIG;
	entries = xcalloc(1, sizeof(*entries));
	entries->reader.section = section;
	entries->reader.machine = find_machine(section->machine);
	entries->reader.rows = rows;
	entries->are_sorted = true;
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
