// SPDX-License-Identifier: BSD-2-Clause
/* Different code objects at the same address, one after another.  Definitions tell them apart,
 * and so do samples where the target asks for it.  BPF and user space compute the same identity. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "naming/code_identity.h"

#define LAST_WITHOUT_VERSION 0x030b0000
#define NOT_HASHED	     UINT64_MAX

/* Sets the version of code object NUMBER.  Python versions without this field ignore it. */
static void set_version(const struct image *image, uint32_t number, uint32_t version)
{
	if (image->offsets.code_version != OFFSET_ABSENT)
		memcpy((void *)(CODE(number) + image->offsets.code_version), &version,
		       sizeof(version));
}

static void set_hash(const struct image *image, uint64_t text, uint64_t hash)
{
	image__set(text, image->layout.object_size + sizeof(uint64_t), hash);
}

static void set_texts(const struct image *image, uint32_t number, uint64_t name, uint64_t filename)
{
	const struct offsets *offsets = &image->offsets;

	image__set(CODE(number), offsets->code_name, name);
	if (offsets->code_qualname != OFFSET_ABSENT)
		image__set(CODE(number), offsets->code_qualname, name);
	image__set(CODE(number), offsets->code_filename, filename);
}

static void set_first_line(const struct image *image, uint32_t number, uint32_t first_line)
{
	memcpy((void *)(CODE(number) + image->offsets.code_firstlineno), &first_line,
	       sizeof(first_line));
}

/* Makes SIZE bytes without a cached hash the line table of CODE(NUMBER); returns the table. */
static uint64_t set_line_table(struct image *image, uint32_t number, const void *bytes, size_t size)
{
	uint64_t table = image__object(image, image->offsets.bytes_data, bytes, size);

	set_hash(image, table, NOT_HASHED);
	image__set(CODE(number), image->offsets.code_linetable, table);
	return table;
}

/* Gives CODE(NUMBER) this name, with a cached hash, and this file name, without one. */
static void set_code(struct image *image, uint32_t number, const char *name, const char *filename,
		     uint32_t first_line)
{
	uint64_t texts[] = { image__text(image, name), image__text(image, filename) };

	set_hash(image, texts[0], name[0] + 256 * number);
	set_hash(image, texts[1], NOT_HASHED);
	set_texts(image, number, texts[0], texts[1]);
	set_line_table(image, number, "\x80\x01\x02", 3);
	set_first_line(image, number, first_line);
}

/* User space's identity of CODE(NUMBER). */
static uint64_t identity_of(const struct image *image, uint32_t number)
{
	const struct target_process target = {
		.process.pid = getpid(),
		.runtime = { .offsets = image->offsets, .layout = image->layout },
	};

	return code_identity__read(&target, CODE(number));
}

static uint64_t last_identity(uint32_t frame)
{
	return kernel.definitions[kernel.definition_count - 1]->frames[frame].identity;
}

static void definitions_have_identities(void **state)
{
	struct image *image = *state;
	const struct definition *sent;

	for (uint32_t i = 0; i < 40; i++) {
		set_code(image, i, "name", "file.py", 7 * i);
		set_version(image, i, 3 * i);
	}
	harness__python_thread(image, image__interp(image), 0, 40);
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	sent = kernel.definitions[0];
	assert_int_equal(sent->depth, 40);
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_not_equal(sent->frames[39 - i].identity, 0);
		assert_int_equal(sent->frames[39 - i].identity, identity_of(image, i));
	}
}

/* Reading identities in each sample would cost more than the walk. */
static void reads_identities_once_for_each_stack(void **state)
{
	struct image *image = *state;
	unsigned long without;

	set_code(image, 0, "a", "file.py", 1);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__sample();
	kernel__sample();
	without = kernel.reads;
	set_code(image, 0, "b", "file.py", 2);
	kernel__sample();
	assert_int_equal(kernel.reads, without);
	assert_int_equal(kernel.definition_count, 1);
}

/* Samples a stack of five code objects that differ only in their addresses. */
static void sample_five(struct image *image)
{
	for (uint32_t i = 0; i < 5; i++)
		set_code(image, i, "name", "file.py", 1);
	set_version(image, 3, 0);
	harness__python_thread(image, image__interp(image), 0, 5);
	kernel__sample();
}

static void tells_samples_apart_by_identity(void **state)
{
	struct image *image = *state;
	__u64 hash;

	sample_five(image);
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	hash = kernel__sample().hash;
	assert_int_equal(kernel__sample().hash, hash);
	assert_int_equal(kernel.definition_count, 2);
	set_first_line(image, 3, 2);
	assert_int_not_equal(kernel__sample().hash, hash);
	assert_int_equal(kernel.definition_count, 3);
	assert_int_equal(last_identity(1), identity_of(image, 3));
	hash = kernel__sample().hash;
	set_version(image, 3, 1);
	assert_int_equal(kernel__sample().hash != hash,
			 image->offsets.code_version != OFFSET_ABSENT);
}

/* Each sample hashes the code object's own fields; its definition has the whole identity, by
 * which user space looks it up. */
static void tells_samples_apart_by_words(void **state)
{
	struct image *image = *state;
	bool has_version = image->offsets.code_version != OFFSET_ABSENT;
	unsigned long without;
	__u64 hash;

	sample_five(image);
	kernel__sample();
	without = kernel.reads;
	kernel__identify(TGID, IDENTIFIED_BY_WORDS);
	hash = kernel__sample().hash;
	assert_int_equal(last_identity(1), identity_of(image, 3));
	assert_int_equal(kernel__sample().hash, hash);
	assert_int_equal(kernel.reads, without + 5);
	set_first_line(image, 3, 2);
	assert_int_not_equal(kernel__sample().hash, hash);
	assert_int_equal(last_identity(1), identity_of(image, 3));
	assert_int_equal(kernel.definition_count, 3);
	hash = kernel__sample().hash;
	set_hash(image, image__get(CODE(3), image->layout.code_shown_name), 4711);
	set_version(image, 3, 1);
	assert_int_equal(kernel__sample().hash != hash, has_version);
}

/* Whether both the identity and the next sample's hash have changed; asserts that they agree. */
static bool is_told_apart(const struct image *image, uint64_t *identity, __u64 *hash)
{
	uint64_t before = *identity;
	__u64 hash_before = *hash;

	*identity = identity_of(image, 0);
	*hash = kernel__sample().hash;
	assert_int_equal(*hash != hash_before, *identity != before);
	if (*hash != hash_before)
		assert_int_equal(last_identity(0), *identity);
	return *identity != before;
}

/* Every change leaves all addresses the same. */
static void tells_code_with_unchanged_addresses_apart(void **state)
{
	struct image *image = *state;
	uint32_t data = image->layout.text_ascii;
	char path[2 * TEXT_END_BYTES];
	uint64_t name, filename, identity = 0;
	__u32 words;
	__u64 hash = 0;

	memset(path, '/', sizeof(path));
	path[sizeof(path) - 1] = 0;
	set_code(image, 0, "name", path, 1);
	name = image__get(CODE(0), image->layout.code_shown_name);
	filename = image__get(CODE(0), image->layout.code_filename);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	assert_true(is_told_apart(image, &identity, &hash));
	words = code_identity_words(identity);
	set_hash(image, name, 4711);
	assert_true(is_told_apart(image, &identity, &hash));
	image__set(name, image->layout.object_size, 3);
	assert_true(is_told_apart(image, &identity, &hash));
	set_hash(image, name, NOT_HASHED);
	assert_true(is_told_apart(image, &identity, &hash));
	memcpy((void *)(name + data), "mask", 4);
	assert_true(is_told_apart(image, &identity, &hash));
	/* Behind its end. */
	memcpy((void *)(name + data), "masx", 4);
	assert_false(is_told_apart(image, &identity, &hash));
	memcpy((void *)(filename + data + strlen(path) - 1), "x", 1);
	assert_true(is_told_apart(image, &identity, &hash));
	memcpy((void *)(filename + data + strlen(path) - TEXT_END_BYTES), "x", 1);
	assert_true(is_told_apart(image, &identity, &hash));
	image__set(filename, image->layout.object_size, strlen(path) - 1);
	assert_true(is_told_apart(image, &identity, &hash));
	/* A hash is set later, for example when a traceback is printed. */
	set_hash(image, filename, 4711);
	assert_false(is_told_apart(image, &identity, &hash));
	/* The code object's own fields are unchanged. */
	assert_int_equal(code_identity_words(identity), words);
	set_first_line(image, 0, 2);
	assert_true(is_told_apart(image, &identity, &hash));
	assert_int_not_equal(code_identity_words(identity), words);
}

static void tells_wide_names_apart(void **state)
{
	struct image *image = *state;
	const struct offsets *offsets = &image->offsets;
	uint64_t filename, identity = 0;
	uint32_t bits = 2 | 1 << 3 | 1 << 5;
	__u64 hash = 0;

	if (offsets->unicode_state == OFFSET_ABSENT)
		return;
	bits <<= offsets->unicode_kind_bit;
	set_code(image, 0, "name", "file.py", 1);
	filename = image__get(CODE(0), image->layout.code_filename);
	memcpy((void *)(filename + offsets->unicode_state), &bits, sizeof(bits));
	memcpy((void *)(filename + offsets->unicode_compact_size), u"\u51fd\u6570.html", 14);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	assert_true(is_told_apart(image, &identity, &hash));
	memcpy((void *)(filename + offsets->unicode_compact_size + 12), u"x", 2);
	assert_true(is_told_apart(image, &identity, &hash));
}

/* Changes a line table of SIZE bytes in the same way. */
static void tells_line_tables_apart(struct image *image, size_t size)
{
	static const uint8_t zeros[4 * LINE_TABLE_BYTES];
	uint64_t identity = 0, table;
	uint8_t *data;
	__u64 hash = 0;

	set_code(image, 0, "name", "file.py", 1);
	table = set_line_table(image, 0, zeros, size);
	data = (uint8_t *)table + image->offsets.bytes_data;
	assert_true(is_told_apart(image, &identity, &hash));
	data[0] = 1;
	assert_true(is_told_apart(image, &identity, &hash));
	data[size - 1] = 2;
	assert_true(is_told_apart(image, &identity, &hash));
	data[size / 2] = 3;
	assert_int_equal(is_told_apart(image, &identity, &hash), size <= LINE_TABLE_BYTES);
	/* Behind its end. */
	data[size] = 4;
	assert_false(is_told_apart(image, &identity, &hash));
	image__set(table, image->layout.object_size, size + 1);
	assert_true(is_told_apart(image, &identity, &hash));
	set_hash(image, table, 4711);
	assert_true(is_told_apart(image, &identity, &hash));
	set_hash(image, table, 4712);
	assert_true(is_told_apart(image, &identity, &hash));
	/* With a hash, the contents are not read. */
	data[0] = 5;
	assert_false(is_told_apart(image, &identity, &hash));
}

static void tells_code_with_other_lines_apart(void **state)
{
	const size_t sizes[] = {
		2, 8, 61, LINE_TABLE_BYTES - 1, LINE_TABLE_BYTES + 1, 3 * LINE_TABLE_BYTES + 5
	};
	struct image *image = *state;

	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		tells_line_tables_apart(image, sizes[i]);
}

/* Nothing behind a line table is read.  A table that claims to be longer than it is has no
 * identity. */
static void reads_nothing_behind_a_line_table(void **state)
{
	struct image *image = *state;
	const uint64_t too_long[] = { 8 * LINE_TABLE_BYTES, 1ULL << 40, INT64_MAX };
	uint32_t data = image->offsets.bytes_data;
	uint64_t end, table;

	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	set_code(image, 0, "name", "file.py", 1);
	end = image__island(image, 4096) + 4096;
	for (size_t size = 8; size <= 2 * LINE_TABLE_BYTES; size += 8) {
		table = (end - data - size) & ~7UL;
		image__set(table, image->layout.object_size, size);
		set_hash(image, table, NOT_HASHED);
		image__set(CODE(0), image->offsets.code_linetable, table);
		kernel__sample();
		assert_true(code_identity_is_whole(last_identity(0)));
		assert_int_equal(last_identity(0), identity_of(image, 0));
	}
	for (size_t i = 0; i < sizeof(too_long) / sizeof(too_long[0]); i++) {
		image__set(table, image->layout.object_size, too_long[i]);
		kernel__sample();
		assert_false(code_identity_is_whole(last_identity(0)));
		assert_int_equal(last_identity(0), identity_of(image, 0));
	}
}

/* Each read costs as much as a frame. */
static void reads_a_file_name_once_for_its_frames(void **state)
{
	struct image *image = *state;
	unsigned long walk;

	for (uint32_t i = 0; i < 10; i++)
		set_code(image, i, "name", "file.py", i);
	for (uint32_t i = 1; i < 10; i++)
		set_texts(image, i, image__get(CODE(i), image->layout.code_shown_name),
			  image__get(CODE(0), image->layout.code_filename));
	harness__python_thread(image, image__interp(image), 0, 10);
	kernel__sample();
	kernel__sample();
	walk = kernel.reads;
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	kernel__sample();
	kernel__sample();
	assert_int_equal(kernel.reads - walk,
			 image->layout.code_version != OFFSET_ABSENT ? 10 : 10 + 10 + 20 + 2);
}

/* From 3.10 on, line tables of code that was compiled in the process have a cached hash. */
static void does_not_read_a_hashed_line_table(void **state)
{
	struct image *image = *state;
	unsigned long walk;

	set_code(image, 0, "name", "file.py", 1);
	set_hash(image, image__get(CODE(0), image->layout.code_line_table), 4711);
	harness__python_thread(image, image__interp(image), 0, 1);
	kernel__sample();
	kernel__sample();
	walk = kernel.reads;
	kernel__identify(TGID, IDENTIFIED_WHOLLY);
	kernel__sample();
	kernel__sample();
	assert_int_equal(kernel.reads - walk, 1 + 1 + 1 + 2);
}

static void unreadable_parts_make_an_identity_partial(void **state)
{
	struct image *image = *state;
	uint64_t nowhere = image__nowhere(image);
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	for (uint32_t i = 1; i < 5; i++)
		set_code(image, i, "name", "file.py", 1);
	set_texts(image, 2, nowhere, image__get(CODE(2), image->layout.code_filename));
	set_texts(image, 3, image__get(CODE(3), image->layout.code_name), nowhere);
	image__set(CODE(4), image->offsets.code_linetable, nowhere);
	image__call(image, tstate, nowhere, 0);
	for (uint32_t i = 1; i < 5; i++)
		image__call(image, tstate, CODE(i), i);
	kernel__sample();
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.definitions[0]->depth, 5);
	assert_int_equal(last_identity(4), 0);
	for (uint32_t i = 1; i < 5; i++)
		assert_int_equal(last_identity(4 - i), identity_of(image, i));
	assert_int_not_equal(last_identity(3), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_false(code_identity_is_whole(last_identity(i)));
	for (uint32_t i = 0; i < 3; i++)
		assert_int_not_equal(code_identity_words(last_identity(i)), 0);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(definitions_have_identities),
		CHECK(reads_identities_once_for_each_stack),
		CHECK(tells_samples_apart_by_identity),
		CHECK(tells_samples_apart_by_words),
		CHECK_IN(0, LAST_WITHOUT_VERSION, tells_code_with_unchanged_addresses_apart),
		CHECK_IN(0, LAST_WITHOUT_VERSION, tells_wide_names_apart),
		CHECK_IN(0, LAST_WITHOUT_VERSION, tells_code_with_other_lines_apart),
		CHECK_IN(0, LAST_WITHOUT_VERSION, reads_nothing_behind_a_line_table),
		CHECK(reads_a_file_name_once_for_its_frames),
		CHECK_IN(0, LAST_WITHOUT_VERSION, does_not_read_a_hashed_line_table),
		CHECK(unreadable_parts_make_an_identity_partial),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
