/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tells a code object, and the objects that it points to, from others that had their addresses
 * before.  BPF and user space compute the same.  Part of pybpfprof.h. */
#ifndef CODE_IDENTITY_H
#define CODE_IDENTITY_H

/* Mixes WORD into DIGEST. */
static inline __u64 digest_word(__u64 digest, __u64 word)
{
	return (digest ^ word ^ digest >> 32) * 0x9e3779b97f4a7c15ULL;
}

/* Where the characters of a str are, by its first words from its length on. */
struct text_form {
	__u64 bytes; /* of its characters */
	__u64 begin; /* their offset from the object's address; 0: they are elsewhere */
};

static inline struct text_form text_form(const struct layout *layout, const __u64 *head)
{
	__u64 state = head[2] >> layout->text_width_bit % 32, length = head[0];
	__u64 compact = state >> 3 & 1, ascii = state >> 4 & 1, width = state & 7;
	__u64 begin = ascii ? layout->text_ascii : layout->text_wide;

	if (layout->text_state == OFFSET_ABSENT)
		return (struct text_form){ length, layout->text_ascii };
	return (struct text_form){ length * width, compact * begin };
}

/* Whether the str or bytes object with HEAD has its hash.  Names have, because they are interned,
 * except for some of 3.11's.  From 3.10 on, line tables that were compiled in the process have.  A
 * file name gets its hash when something needs it, so the hash tells nothing there. */
static inline bool text_is_hashed(const __u64 *head)
{
	return head[1] != ~0ULL;
}

static inline bool codes_have_versions(const struct layout *layout)
{
	return layout->code_version != OFFSET_ABSENT;
}

/* Makes HEAD that of an object without a hash.  Where code objects have versions, whether the hash
 * was computed must not tell two with the same version apart: there it costs more if a code object
 * seems to be replaced. */
static inline void text_forget_hash(__u64 *head)
{
	head[1] = ~0ULL;
}

/* Tells a str from another at its address, by its hash, or without that by its END, padded with
 * zeros.  Never 0. */
static inline __u64 text_digest(const __u64 *head, bool hashed, const __u64 *end)
{
	__u64 digest = digest_word(0, head[0] + 1);

	if (hashed)
		digest = digest_word(digest, head[1]);
	for (__u32 i = 0; i < TEXT_END_WORDS && !hashed; i++)
		digest = digest_word(digest, end[i]);
	return digest ? digest : 1;
}

/* How many bytes of the line table with HEAD are read at its beginning and at its end. */
struct line_table_ends {
	__u64 first, last;
};

static inline struct line_table_ends line_table_ends(const __u64 *head)
{
	if (text_is_hashed(head))
		return (struct line_table_ends){ 0, 0 };
	if (head[0] <= LINE_TABLE_BYTES)
		return (struct line_table_ends){ head[0], 0 };
	return (struct line_table_ends){ LINE_TABLE_BYTES / 2, LINE_TABLE_BYTES / 2 };
}

/* Tells a line table from another at its address: by its hash, or without that by its ENDS, one
 * after the other in WORDS, the last word padded with zeros.  Never 0. */
static inline __u64 line_table_digest(const __u64 *head, struct line_table_ends ends,
				      const __u64 *words)
{
	__u64 digest = digest_word(digest_word(0, head[0] + 1), head[1]);

	for (__u32 i = 0; i < LINE_TABLE_WORDS && i * 8 < ends.first + ends.last; i++)
		digest = digest_word(digest, words[i]);
	return digest ? digest : 1;
}

/*
 * Tells a code object from others that had its address before: by the addresses of its name, file
 * name and line table, its first line and, from 3.12 on, its version.  An interpreter gives each
 * version only once; up to 3.11 VERSION is 0.
 *
 * A new code object is made after its name, file name and line table.  So these are at other
 * addresses than the old one's, unless the old one was freed before.  In that case, up to 3.11, all
 * three may get the old addresses, as they mostly do where code objects are made, called and thrown
 * away one after another.  Later versions have the same problem where one interpreter follows
 * another.  code_identity_with() adds the contents of these objects.
 *
 * The result is whole, and never 0.
 */
static inline __u64 code_identity(__u64 name, __u64 filename, __u64 line_table, __u32 first_line,
				  __u32 version)
{
	__u64 identity = (name ^ first_line ^ (__u64)version << 32) * 0x9e3779b97f4a7c15ULL;

	identity = (identity ^ identity >> 32 ^ filename) * 0xff51afd7ed558ccdULL;
	identity = (identity ^ identity >> 29 ^ line_table) * 0xc4ceb9fe1a85ec53ULL;
	return (__u32)identity ? identity : identity | 1;
}

/* The part of IDENTITY from the code object's own fields. */
static inline __u32 code_identity_words(__u64 identity)
{
	return identity >> 32;
}

/* Whether IDENTITY is complete: all that it is made from could be read. */
static inline bool code_identity_is_whole(__u64 identity)
{
	return (__u32)identity;
}

/* Whether ONE and OTHER certainly belong to different code objects. */
static inline bool code_identity_differs(__u64 one, __u64 other)
{
	if (!one || !other || code_identity_words(one) != code_identity_words(other))
		return one && other;
	return code_identity_is_whole(one) && code_identity_is_whole(other) && one != other;
}

/* Adds to IDENTITY the digests of the NAME that is shown, the FILENAME and the LINE_TABLE.  The
 * result is not whole if one of these is 0: it could not be read. */
static inline __u64 code_identity_with(__u64 identity, __u64 name, __u64 filename, __u64 line_table)
{
	__u64 digest = digest_word(digest_word(digest_word(0, name), filename), line_table);
	__u32 objects = digest ^ digest >> 32;

	identity = (__u64)code_identity_words(identity) << 32;
	if (!identity || !name || !filename || !line_table)
		return identity;
	return identity | (objects ? objects : 1);
}

#endif
