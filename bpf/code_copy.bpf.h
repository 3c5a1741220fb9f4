/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Copies of code objects, for names after a process has ended.
 *
 * User space names a code object when it gets the definition of a stack with it, some milliseconds
 * after the sample.  Before that, a short process may end, or a program may free code that it made
 * to run once.  During the sample the interrupted thread runs the code, so the code object is
 * there, with its names and its line table.  They are copied to user space before the definition,
 * once by each CPU.
 *
 * Copies are optional.  BPF skips objects that are not in memory or larger than usual, and
 * further ones if there are too many.  User space reads those from the process.
 */
#ifndef CODE_COPY_BPF_H
#define CODE_COPY_BPF_H

/* With two nested rounds, the verifier's work grows with their sum. */
#define COPY_ROUND 32

/* Appends SIZE bytes at ADDRESS to the record as PIECE; returns whether it could. */
__noinline int copy_piece(__u32 cpu, __u64 address, __u32 size, __u32 piece)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u32 at;

	if (!walk || size > CODE_PIECE_BYTES)
		return 0;
	at = walk->copied_words;
	if (at >= CODE_RECORD_BYTES / sizeof(__u64) ||
	    !read_user(&walk->copy.words[at], size, address))
		return 0;
	walk->copy.bytes[piece % CODE_PIECES] = size;
	walk->copied_words = at + (size + sizeof(__u64) - 1) / sizeof(__u64);
	return 1;
}

/* The size of the object for PIECE, whose first words were just read; 0 where its characters are
 * elsewhere.  The next byte may be in a page that is not there. */
static __always_inline __u64 object_bytes(const struct walk *walk, __u32 piece)
{
	struct text_form form;

	if (piece == PIECE_LINE_TABLE)
		return walk->layout.bytes_data + walk->text_head[0];
	form = text_form(&walk->layout, walk->text_head);
	return form.begin ? form.begin + form.bytes : 0;
}

/* Copies, as PIECE, the str or bytes object in the field at OFFSET of the copied code object;
 * returns whether it could. */
__noinline int copy_object(__u32 cpu, __u32 offset, __u32 piece)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 address, bytes;

	if (!walk)
		return 0;
	address = walk->copy.words[offset % CODE_HEAD_BYTES / sizeof(__u64)];
	if (!address || !read_user(walk->text_head, sizeof(walk->text_head),
				   address + walk->layout.object_size))
		return 0;
	bytes = object_bytes(walk, piece);
	return bytes && bytes <= CODE_PIECE_BYTES && copy_piece(cpu, address, bytes, piece);
}

/* Sends the copied record; returns whether there was room.  Definitions have priority, so none is
 * sent to a busy ring. */
static __always_inline bool send_copy(struct walk *walk)
{
	__u32 bytes = walk->copied_words * sizeof(__u64);

	if (bytes > CODE_RECORD_BYTES || bytes > walk->copies_left || is_ring_busy())
		return false;
	walk->copies_left -= bytes;
	return !bpf_ringbuf_output(&definitions, &walk->copy, CODE_RECORD_HEADER_BYTES + bytes,
				   wake());
}

/* ADDRESS, mixed with the process, so that processes do not share entries. */
static __always_inline __u64 address_of(const struct walk *walk, __u64 address)
{
	return (address ^ walk->target.serial * 0xff51afd7ed558ccdULL) * 0x9e3779b97f4a7c15ULL;
}

/* Copies the code object of frame AT of the stack, unless this CPU has done so.  Returns whether
 * there are no more frames. */
__noinline int copy_code(__u32 cpu, __u32 at)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct frame *frame;
	__u64 place, key, *copied;

	if (!walk || at >= walk->depth || walk->copies_left < CODE_HEAD_BYTES)
		return 1;
	frame = &walk->definition.frames[at % STACK_FRAMES_MAX];
	if (frame->kind != FRAME_PYTHON || !frame->identity)
		return 0;
	place = address_of(walk, frame->address);
	key = place + frame->identity;
	copied = &walk->copied[place >> 32 & (COPIED_CODES - 1)];
	if (*copied == key)
		return 0;
	walk->copied_words = 0;
	walk->copy.kind = RECORD_CODE;
	walk->copy.serial = walk->target.serial;
	walk->copy.address = frame->address;
	walk->copy.identity = frame->identity;
	if (walk->layout.code_bytes <= CODE_HEAD_BYTES &&
	    copy_piece(cpu, frame->address, walk->layout.code_bytes, PIECE_CODE) &&
	    copy_object(cpu, walk->layout.code_shown_name, PIECE_NAME) &&
	    copy_object(cpu, walk->layout.code_filename, PIECE_FILENAME) &&
	    copy_object(cpu, walk->layout.code_line_table, PIECE_LINE_TABLE) && send_copy(walk))
		*copied = key;
	return 0;
}

__noinline int copy_round(__u32 cpu, __u32 first)
{
	for (__u32 i = 0; i < COPY_ROUND; i++)
		if (copy_code(cpu, first + i))
			return 1;
	return 0;
}

/* Copies the code objects of the stack, innermost first. */
__noinline int copy_codes(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	walk->copies_left = CODES_BYTES_A_STACK;
	for (__u32 i = 0; i < STACK_FRAMES_MAX / COPY_ROUND; i++)
		if (copy_round(cpu, i * COPY_ROUND))
			return 0;
	return 0;
}

#endif
