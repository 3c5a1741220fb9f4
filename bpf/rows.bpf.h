/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From an address to its row (unwind.h). */
#ifndef ROWS_BPF_H
#define ROWS_BPF_H

#define ROW_SEARCH_STEPS   9
#define TABLE_SEARCH_STEPS 16

struct row_chunk {
	__u32 rows[CHUNK_ROWS];
};

struct mapping_chunk {
	struct unwind_mapping mappings[CHUNK_MAPPINGS];
};

static __always_inline void *chunk_at(__u32 number)
{
	const __u32 first = 0;
	void *chunk = bpf_map_lookup_elem(&unwind_chunks, &number);

	return chunk ? bpf_map_lookup_elem(chunk, &first) : NULL;
}

/* Finds the mapping with ADDRESS, and its file; returns whether there is one. */
__noinline int find_mapping(__u32 cpu, __u64 address)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	const struct unwind_mapping *mapping;
	const struct mapping_chunk *chunk;
	struct native_walk *native;
	struct unwind_file *file;
	__u32 first, left, half, number;

	if (!walk)
		return 0;
	native = &walk->native;
	first = native->table.first;
	left = native->table.count;
	chunk = chunk_at(first / CHUNK_MAPPINGS);
	if (!chunk)
		return 0;
	for (__u32 i = 0; i < TABLE_SEARCH_STEPS && left; i++) {
		half = (left + 1) / 2;
		if (chunk->mappings[(first + half - 1) % CHUNK_MAPPINGS].start <= address) {
			first += half;
			left -= half;
		} else {
			left = half - 1;
		}
	}
	if (first == native->table.first)
		return 0;
	mapping = &chunk->mappings[(first - 1) % CHUNK_MAPPINGS];
	if (address >= mapping->end)
		return 0;
	native->mapping_start = mapping->start;
	native->mapping_bytes = mapping->end - mapping->start;
	native->bias = mapping->bias;
	native->trampoline_row = mapping->row;
	native->file_number = number = mapping->file;
	file = bpf_map_lookup_elem(&unwind_files, &number);
	if (file)
		native->file = *file;
	return 1;
}

/* The last of the COUNT rows behind row BEFORE that begins at LOW or lower in its page; BEFORE
 * itself where none does. */
__noinline int search_rows(__u32 before, __u32 count, __u32 low)
{
	const struct row_chunk *chunk = chunk_at(before / CHUNK_ROWS);
	__u32 half;

	if (!chunk)
		return ROW_NUMBERED(ROW_NONE, ROW_NOT_LOADED);
	for (__u32 i = 0; i < ROW_SEARCH_STEPS && count; i++) {
		half = (count + 1) / 2;
		if (ROW_LOW(chunk->rows[(before + half) % CHUNK_ROWS]) <= low) {
			before += half;
			count -= half;
		} else {
			count = half - 1;
		}
	}
	return chunk->rows[before % CHUNK_ROWS];
}

/* The row of code at ADDRESS, for which no file is known; ABSENCE: why.  It is a trampoline's, or
 * it may be that of CPython's JIT, whose code comes and goes.  From 3.15 on that keeps the frame
 * pointer.  The eval loop has called it: so the next activation's entry is above its frame. */
__noinline int row_without_file(__u32 cpu, __u64 address, __u32 absence)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct native_walk *native;
	__u32 next;

	if (!walk)
		return 0;
	native = &walk->native;
	next = native->matched;
	if (native->file_number == UNWIND_TRAMPOLINES)
		return native->trampoline_row | ROW_PLUMBING;
	if (!native->table.runs_jit || !native->has_fp || next >= walk->entry_count ||
	    next >= STACK_FRAMES_MAX || native->fp < native->sp ||
	    native->fp > walk->entries[next] ||
	    walk->entries[next] < native->fp + ROW_N(JIT_ROW) * sizeof(__u64))
		return ROW_NUMBERED(ROW_NONE, absence);
	/* It may also be a library that was just loaded. */
	if (absence == ROW_NOT_LOADED && !native->lacks_rows)
		native->lacks_rows = address & ~(__u64)(UNWIND_TEXT_PAGE - 1);
	native->kind = FRAME_JIT;
	return JIT_ROW | ROW_PLUMBING;
}

/* The row for ADDRESS. */
static __always_inline __u32 row_at(struct walk *walk, __u32 cpu, __u64 address)
{
	struct native_walk *native = &walk->native;
	const struct row_chunk *chunk;
	__u64 at, page;
	__u32 word;

	if (address - native->mapping_start >= native->mapping_bytes &&
	    !find_mapping(cpu, address)) {
		native->mapping_bytes = 0;
		native->file_number = UNWIND_NO_FILE;
		return row_without_file(cpu, address, ROW_NOT_LOADED);
	}
	if (native->file_number >= UNWIND_TRAMPOLINES)
		return row_without_file(cpu, address, ROW_NO_CODE);
	if (!native->file.pages)
		return ROW_NUMBERED(ROW_NONE, ROW_NOT_LOADED);
	at = address - native->bias - native->file.base;
	page = at / UNWIND_TEXT_PAGE;
	if (page >= native->file.pages)
		return ROW_NUMBERED(ROW_NONE, ROW_NO_CODE);
	word = native->file.directory + page;
	chunk = chunk_at(word / CHUNK_ROWS);
	if (!chunk)
		return ROW_NUMBERED(ROW_NONE, ROW_NOT_LOADED);
	word = chunk->rows[word % CHUNK_ROWS];
	return search_rows(native->file.rows + DIRECTORY_FIRST(word) - 1, DIRECTORY_COUNT(word),
			   at % UNWIND_TEXT_PAGE);
}

#endif
