/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which code object.
 *
 * The addresses of their code objects distinguish stacks.  Code objects are freed, and their
 * addresses used again: by what is imported, exec'd, made from a template.  More tells them apart,
 * at a price (enum identification).  Their own fields cost one read a frame.  From 3.12 on these
 * are enough as long as there is one interpreter.  The contents of their objects take up to four
 * more reads, several times as much as the walk.  User space sets how much is read in each sample,
 * as the process's rate and depth allow (user/naming/code_identification.c).  Then no code object
 * can come and go unnoticed between two looks of user space.
 *
 * All of it is read once for each stack, when the stack is defined: user space names nothing that
 * was replaced before it came to read.  If user space finds that a code object was replaced later,
 * it doubts what it counted in between, unless all was read.  For a while it then has all read in
 * each sample of that process, as in the first second of each process (user/naming/symbolizer.c).
 */
#ifndef CODE_BPF_H
#define CODE_BPF_H

/* With two nested rounds, the verifier's work grows with their sum. */
#define IDENTIFY_ROUND 32

/* The word of the code object with the field at OFFSET, shifted to that; 0 where there is no such
 * field. */
static __always_inline __u64 code_field(const struct walk *walk, __u16 offset)
{
	__u32 at = offset - walk->layout.code_identity_start;

	if (offset == OFFSET_ABSENT)
		return 0;
	return walk->code_words[at / sizeof(__u64) % (CODE_IDENTITY_BYTES / sizeof(__u64))] >>
	       at % sizeof(__u64) * 8;
}

/* The identity of the code object at ADDRESS, from its own fields; 0 where it cannot be read. */
static __always_inline __u64 identify_code(struct walk *walk, __u64 address)
{
	struct layout *layout = &walk->layout;
	__u32 size = layout->code_identity_bytes;

	if (size > CODE_IDENTITY_BYTES ||
	    !read_user(walk->code_words, size, address + layout->code_identity_start))
		return 0;
	return code_identity(
		code_field(walk, layout->code_name), code_field(walk, layout->code_filename),
		code_field(walk, layout->code_line_table),
		code_field(walk, layout->code_first_line), code_field(walk, layout->code_version));
}

/* The text_digest() of the str at ADDRESS, from its hash if BY_HASH and it has one; 0 where it
 * cannot be read. */
__noinline __u64 digest_text(__u32 cpu, __u64 address, __u32 by_hash)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct text_form form;
	__u64 size;

	if (!walk || !address ||
	    !read_user(walk->text_head, sizeof(walk->text_head),
		       address + walk->layout.object_size))
		return 0;
	if (by_hash && text_is_hashed(walk->text_head))
		return text_digest(walk->text_head, true, walk->text_end);
	form = text_form(&walk->layout, walk->text_head);
	size = form.begin ? form.bytes : 0;
	if (size > TEXT_END_BYTES)
		size = TEXT_END_BYTES;
	__builtin_memset(walk->text_end, 0, sizeof(walk->text_end));
	if (size && !read_user(walk->text_end, size, address + form.begin + form.bytes - size))
		return 0;
	return text_digest(walk->text_head, false, walk->text_end);
}

/* The line_table_digest() of the line table at ADDRESS; 0 where it cannot be read. */
__noinline __u64 digest_line_table(__u32 cpu, __u64 address)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct line_table_ends ends;
	__u64 begin;

	if (!walk || !address ||
	    !read_user(walk->text_head, sizeof(walk->text_head),
		       address + walk->layout.object_size))
		return 0;
	if (codes_have_versions(&walk->layout))
		text_forget_hash(walk->text_head);
	ends = line_table_ends(walk->text_head);
	begin = address + walk->layout.bytes_data;
	/* The read may not fill the last word. */
	walk->line_table[ends.first / sizeof(__u64) % LINE_TABLE_WORDS] = 0;
	if (ends.first > LINE_TABLE_BYTES ||
	    (ends.first && !read_user(walk->line_table, ends.first, begin)))
		return 0;
	if (ends.last && !read_user(walk->line_table + LINE_TABLE_WORDS / 2, LINE_TABLE_BYTES / 2,
				    begin + walk->text_head[0] - LINE_TABLE_BYTES / 2))
		return 0;
	return line_table_digest(walk->text_head, ends, walk->line_table);
}

/* Whether code objects with the same fields may be different ones.  Each interpreter counts its
 * versions from the beginning. */
static __always_inline bool versions_repeat(const struct walk *walk)
{
	return !codes_have_versions(&walk->layout) || walk->several || walk->target.repeats;
}

/* IDENTITY of the code object that was just read, with the contents of its objects; not whole where
 * these cannot be read.  Adjacent frames often have the same file name, which is read once. */
static __always_inline __u64 identify_objects(struct walk *walk, __u32 cpu, __u64 identity)
{
	__u64 filename = code_field(walk, walk->layout.code_filename);
	__u64 name = digest_text(cpu, code_field(walk, walk->layout.code_shown_name),
				 !codes_have_versions(&walk->layout));
	__u64 line_table = digest_line_table(cpu, code_field(walk, walk->layout.code_line_table));

	if (filename != walk->filename) {
		walk->filename = filename;
		walk->filename_digest = digest_text(cpu, filename, 0);
	}
	return code_identity_with(identity, name, walk->filename_digest, line_table);
}

/* Identifies frame AT of the stack and mixes that into the stack's hash, unless the stack is being
 * defined.  Returns whether there are no more frames. */
__noinline int identify_frame(__u32 cpu, __u32 at)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct frame *frame;

	if (!walk || at >= walk->depth)
		return 1;
	frame = &walk->definition.frames[at % STACK_FRAMES_MAX];
	if (frame->kind != FRAME_PYTHON)
		return 0;
	frame->identity = identify_code(walk, frame->address);
	if (frame->identity &&
	    (walk->defining || (walk->identify == IDENTIFIED_WHOLLY && versions_repeat(walk))))
		frame->identity = identify_objects(walk, cpu, frame->identity);
	if (!walk->defining)
		walk->hash =
			(walk->hash ^ frame->identity ^ walk->hash >> 32) * 0x9e3779b97f4a7c15ULL;
	return 0;
}

__noinline int identify_round(__u32 cpu, __u32 first)
{
	for (__u32 i = 0; i < IDENTIFY_ROUND; i++)
		if (identify_frame(cpu, first + i))
			return 1;
	return 0;
}

/* Identifies all frames of the stack. */
__noinline int identify_frames(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	walk->filename = walk->filename_digest = 0;
	for (__u32 i = 0; i < STACK_FRAMES_MAX / IDENTIFY_ROUND; i++)
		if (identify_round(cpu, i * IDENTIFY_ROUND))
			return 0;
	return 0;
}

#endif
