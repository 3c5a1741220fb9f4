// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_objects.h"
#include "python/code.h"

#define FUZZ_ROUNDS 5000

static int read_fake(const struct fake_code *fake, uint64_t code_type, struct code *code)
{
	return code__read(getpid(), &fake->offsets, code_type, (uintptr_t)fake->object, code);
}

static void check_refused(const struct fake_code *fake, int error)
{
	struct code code, empty;

	memset(&empty, 0, sizeof(empty));
	assert_int_equal(read_fake(fake, FAKE_CODE_TYPE, &code), error);
	assert_memory_equal(&code, &empty, sizeof(code));
}

static void every_version_is_read(void **state)
{
	(void)state;
	for (int minor = 6; minor <= 15; minor++) {
		struct fake_code fake;
		struct code code;

		fake_code(&fake, minor);
		assert_int_equal(read_fake(&fake, FAKE_CODE_TYPE, &code), 0);
		assert_string_equal(code.name, minor >= 11 ? "Caf\u00e9.method" : "method");
		assert_string_equal(code.filename, "a\u00b5.py");
		assert_int_equal(code.first_line, 42);
		assert_false(code.hidden);
		assert_int_equal(code.line_table_length, sizeof(fake_table));
		assert_memory_equal(code.line_table, fake_table, sizeof(fake_table));
		code__free(&code);
		assert_null(code.name);
		code__free(&code);
	}
}

static bool lives(struct fake_code *fake, uint64_t count)
{
	fake_put(fake->object, fake->offsets.object_type - 8, count, 8);
	return code__is_alive(getpid(), &fake->offsets, 0, (uintptr_t)fake->object);
}

/* The word before the type is a reference count, in the forms of all versions, or what allocators
 * write there afterwards. */
static void freed_code_is_recognized(void **state)
{
	const uint64_t living[] = { 1, 999999999, 0xffffffff, 1ULL << 48 | 3ULL << 30 };
	const uint64_t freed[] = { 0, 0x7f1234567890, 0x55d01234a5b0, 0x55d01234a };
	struct fake_code fake;

	(void)state;
	fake_code(&fake, 11);
	for (int i = 0; i < 4; i++)
		assert_true(lives(&fake, living[i]));
	for (int i = 0; i < 4; i++)
		assert_false(lives(&fake, freed[i]));
	assert_false(code__is_alive(getpid(), &fake.offsets, 0, 4096));
	/* An address in a heap that lies low may look like a count.  Then the type decides. */
	fake_put(fake.object, fake.offsets.object_type - 8, 0xf0860d0, 8);
	assert_true(
		code__is_alive(getpid(), &fake.offsets, FAKE_CODE_TYPE, (uintptr_t)fake.object));
	fake_put(fake.object, fake.offsets.object_type, 0xf086210, 8);
	assert_false(
		code__is_alive(getpid(), &fake.offsets, FAKE_CODE_TYPE, (uintptr_t)fake.object));
}

/* There are a local and a shared count.  The shared one has flags in its two lowest bits. */
static void freed_code_is_recognized_without_a_gil(void **state)
{
	struct fake_code fake;
	uint64_t object = (uintptr_t)fake.object;

	(void)state;
	fake_code(&fake, 11);
	fake.offsets.free_threaded = 1;
	fake.offsets.object_type = 24;
	fake_put(fake.object, 12, 0, 4);
	assert_false(lives(&fake, 3));
	assert_true(lives(&fake, 1 << 2 | 3));
	fake_put(fake.object, 12, 1, 4);
	assert_true(lives(&fake, 0));
	assert_true(code__is_alive(getpid(), &fake.offsets, 0, object));
}

/* Makes the record of FAKE that BPF would make, with whole objects.  Returns its size. */
static size_t copy_fake(const struct fake_code *fake, const uint8_t *name, size_t filename_bytes,
			struct code_record *record)
{
	const uint8_t *pieces[CODE_PIECES] = { fake->object, name, fake->filename, fake->table };
	const size_t bytes[CODE_PIECES] = { FAKE_CODE_BYTES, FAKE_STR_BYTES, filename_bytes,
					    FAKE_TABLE_BYTES };
	size_t at = 0;

	memset(record, 0, CODE_RECORD_HEADER_BYTES);
	record->kind = RECORD_CODE;
	for (int i = 0; i < CODE_PIECES; i++) {
		memcpy(&record->words[at], pieces[i], bytes[i]);
		record->bytes[i] = bytes[i];
		at += (bytes[i] + 7) / 8;
	}
	return CODE_RECORD_HEADER_BYTES + 8 * at;
}

/* Decodes a copy of exactly SIZE bytes, so that AddressSanitizer detects a read beyond it. */
static int decode(const struct fake_code *fake, const struct code_record *record, size_t size,
		  struct code *code)
{
	struct code_record *copy = memcpy(malloc(size ? size : 1), record, size);
	int error = code__decode(&fake->offsets, FAKE_CODE_TYPE, copy, size, code);

	free(copy);
	return error;
}

static void copies_of_every_version_are_decoded(void **state)
{
	static struct code_record record;

	(void)state;
	for (int minor = 6; minor <= 15; minor++) {
		struct fake_code fake;
		struct code code;
		size_t size;

		fake_code(&fake, minor);
		fake_str(&fake.offsets, fake.filename, FAKE_COMPACT, u"a\u0142.py", 5, 2);
		size = copy_fake(&fake, minor >= 11 ? fake.qualname : fake.name, FAKE_STR_BYTES,
				 &record);
		assert_int_equal(decode(&fake, &record, size, &code), 0);
		assert_string_equal(code.name, minor >= 11 ? "Caf\u00e9.method" : "method");
		assert_string_equal(code.filename, "a\u0142.py");
		assert_int_equal(code.first_line, 42);
		assert_int_equal(code.line_table_length, sizeof(fake_table));
		assert_memory_equal(code.line_table, fake_table, sizeof(fake_table));
		code__free(&code);
		for (size_t cut = 0; cut < size; cut += cut < 64 ? 1 : 24)
			assert_int_equal(decode(&fake, &record, cut, &code), -ERANGE);
		/* BPF copied only one byte of each wide character. */
		size = copy_fake(&fake, fake.name, fake.offsets.unicode_compact_size + 5, &record);
		assert_int_equal(decode(&fake, &record, size, &code), -ERANGE);
		fake_put((uint8_t *)record.words, fake.offsets.object_type, FAKE_CODE_TYPE + 8, 8);
		assert_int_equal(decode(&fake, &record, size, &code), -EINVAL);
	}
}

static void code_of_2_7_is_read(void **state)
{
	struct offsets offsets = fake_offsets_2_7();
	uint8_t type[FAKE_TYPE_BYTES];
	struct fake_code fake;
	struct code code;

	(void)state;
	fake_code(&fake, 6);
	fake.offsets = offsets;
	fake_python2_type(&offsets, type, FAKE_STRING_TYPE);
	fake_python2_str(&offsets, fake.name, type, "caf\xc3\xa9", 5);
	fake_python2_str(&offsets, fake.filename, type, "a.py", 4);
	fake_python2_str(&offsets, fake.table, type, (const char *)fake_table, sizeof(fake_table));
	fake_put(fake.object, offsets.code_firstlineno, 42, 4);
	fake_put(fake.object, offsets.code_name, (uintptr_t)fake.name, 8);
	fake_put(fake.object, offsets.code_filename, (uintptr_t)fake.filename, 8);
	fake_put(fake.object, offsets.code_linetable, (uintptr_t)fake.table, 8);
	assert_int_equal(read_fake(&fake, FAKE_CODE_TYPE, &code), 0);
	assert_string_equal(code.name, "caf\u00e9");
	assert_string_equal(code.filename, "a.py");
	assert_int_equal(code.first_line, 42);
	assert_int_equal(code.line_table_length, sizeof(fake_table));
	assert_memory_equal(code.line_table, fake_table, sizeof(fake_table));
	code__free(&code);
	fake_python2_type(&offsets, type, 0);
	check_refused(&fake, -EINVAL);
}

static bool is_hidden(struct fake_code *fake, uint32_t first_traceable, uint64_t size)
{
	struct code code;
	bool hidden;

	fake_put(fake->object, fake->offsets.code_firsttraceable, first_traceable, 4);
	fake_put(fake->object, fake->offsets.varobject_size, size, 8);
	assert_int_equal(read_fake(fake, FAKE_CODE_TYPE, &code), 0);
	hidden = code.hidden;
	code__free(&code);
	return hidden;
}

/* The array of the threads' copies of the bytecode, in free-threaded builds. */
#define COPY_COUNT 4

struct fake_copies {
	uint64_t size;
	uint64_t entries[COPY_COUNT];
};

/* The position of an instruction AT code units behind the start of the original bytecode, in copy
 * INDEX; -1 if it is unknown. */
static int32_t position_of(const struct fake_code *fake, int64_t at, uint16_t index)
{
	struct frame frame = { .position = (int32_t)at, .detail = index };
	int32_t position;
	struct code code;
	bool told;

	assert_int_equal(read_fake(fake, FAKE_CODE_TYPE, &code), 0);
	told = code__position(getpid(), &fake->offsets, (uintptr_t)fake->object, &code, &frame,
			      &position);
	code__free(&code);
	return told ? position : -1;
}

static void positions_in_the_original_are_unchanged(void **state)
{
	(void)state;
	for (int minor = 6; minor <= 15; minor++) {
		struct fake_code fake;

		fake_code(&fake, minor);
		assert_int_equal(position_of(&fake, 5, 0), 5);
		assert_int_equal(position_of(&fake, 5000, 0), 5000);
		assert_int_equal(position_of(&fake, -1, 0), -1);
		assert_int_equal(position_of(&fake, POSITION_UNKNOWN, 0), -1);
	}
}

static void positions_in_copies_become_those_in_the_original(void **state)
{
	/* The last distance does not fit in 32 bits. */
	const int64_t distances[COPY_COUNT] = { 0, 1000, -70000, 3LL << 32 | 99 };

	(void)state;
	for (unsigned int minor = 14; minor <= 15; minor++) {
		struct fake_copies copies = { .size = COPY_COUNT };
		struct fake_code fake;
		struct offsets offsets;

		fake_code(&fake, minor);
		assert_int_equal(
			offsets__lookup(fake.offsets.version, BUILD_FREE_THREADED, &offsets), 0);
		fake.offsets.code_tlbc = 200;
		fake.offsets.tlbc_size = offsets.tlbc_size;
		fake.offsets.tlbc_entries = offsets.tlbc_entries;
		fake_put(fake.object, fake.offsets.code_tlbc, (uintptr_t)&copies, 8);
		for (int i = 0; i < COPY_COUNT; i++)
			copies.entries[i] = (uintptr_t)fake.object +
					    fake.offsets.code_code_adaptive + 2 * distances[i];
		for (int i = 0; i < COPY_COUNT; i++) {
			assert_int_equal(position_of(&fake, distances[i], i), 0);
			assert_int_equal(position_of(&fake, distances[i] + 7, i), 7);
			assert_int_equal(
				position_of(&fake, distances[i] + FAKE_INSTRUCTIONS - 1, i),
				FAKE_INSTRUCTIONS - 1);
			assert_int_equal(position_of(&fake, distances[i] + FAKE_INSTRUCTIONS, i),
					 -1);
			assert_int_equal(position_of(&fake, distances[i] - 1, i), -1);
		}
		assert_int_equal(position_of(&fake, distances[1], 2), -1);
		assert_int_equal(position_of(&fake, 0, COPY_COUNT), -1);
		assert_int_equal(position_of(&fake, 0, TLBC_INDEX_MAX), -1);
		copies.entries[1] = 0;
		assert_int_equal(position_of(&fake, distances[1], 1), -1);
		fake_put(fake.object, fake.offsets.code_tlbc, 16, 8);
		assert_int_equal(position_of(&fake, distances[2], 2), -1);
	}
}

static void code_that_is_never_traced_is_hidden(void **state)
{
	(void)state;
	for (int minor = 11; minor <= 15; minor++) {
		struct fake_code fake;

		fake_code(&fake, minor);
		assert_false(is_hidden(&fake, 0, FAKE_INSTRUCTIONS));
		assert_false(is_hidden(&fake, FAKE_INSTRUCTIONS - 1, FAKE_INSTRUCTIONS));
		assert_true(is_hidden(&fake, FAKE_INSTRUCTIONS, FAKE_INSTRUCTIONS));
		assert_true(is_hidden(&fake, FAKE_INSTRUCTIONS + 1, FAKE_INSTRUCTIONS));
		assert_true(is_hidden(&fake, 4, 4));
		assert_false(is_hidden(&fake, 4, 1ULL << 32));
		assert_false(is_hidden(&fake, -1, FAKE_INSTRUCTIONS));
	}
}

static void none_is_read_as_hidden_code_since_3_13(void **state)
{
	(void)state;
	for (int minor = 11; minor <= 15; minor++) {
		static const char *const names[] = { "NoneType", "NoneTypes", "code" };
		struct fake_code fake;

		fake_code(&fake, minor);
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			uint8_t type[FAKE_CODE_BYTES] = { 0 };
			struct code code;

			fake_put(type, fake.offsets.varobject_size + 8, (uintptr_t)names[i], 8);
			fake_put(fake.object, fake.offsets.object_type, (uintptr_t)type, 8);
			if (minor < 13 || i) {
				check_refused(&fake, -EINVAL);
				continue;
			}
			assert_int_equal(read_fake(&fake, FAKE_CODE_TYPE, &code), 0);
			assert_true(code.hidden);
			assert_null(code.name);
			code__free(&code);
		}
	}
}

static void the_type_is_checked_if_known(void **state)
{
	struct fake_code fake;
	struct code code;

	(void)state;
	fake_code(&fake, 12);
	fake_put(fake.object, fake.offsets.object_type, FAKE_CODE_TYPE + 8, 8);
	check_refused(&fake, -EINVAL);
	assert_int_equal(read_fake(&fake, 0, &code), 0);
	code__free(&code);
}

/* A program may number its lines below 1. */
static void first_lines_may_be_any_number(void **state)
{
	struct fake_code fake;
	struct code code;

	(void)state;
	fake_code(&fake, 12);
	fake_put(fake.object, fake.offsets.code_firstlineno, 0, 4);
	assert_int_equal(read_fake(&fake, FAKE_CODE_TYPE, &code), 0);
	assert_int_equal(code.first_line, 0);
	code__free(&code);
	fake_put(fake.object, fake.offsets.code_firstlineno, INT32_MAX, 4);
	assert_int_equal(read_fake(&fake, FAKE_CODE_TYPE, &code), 0);
	code__free(&code);
	fake_put(fake.object, fake.offsets.code_firstlineno, (uint32_t)-99, 4);
	assert_int_equal(read_fake(&fake, FAKE_CODE_TYPE, &code), 0);
	assert_int_equal(code.first_line, (uint32_t)-99);
	code__free(&code);
}

static void bad_members_are_refused(void **state)
{
	struct fake_code fake;

	(void)state;
	fake_code(&fake, 12);
	fake_put(fake.object, fake.offsets.code_qualname, 8, 8);
	check_refused(&fake, -EFAULT);
	fake_code(&fake, 12);
	fake.qualname[fake.offsets.unicode_state] = 0;
	check_refused(&fake, -EINVAL);
	fake_code(&fake, 12);
	fake_put(fake.object, fake.offsets.code_filename, 8, 8);
	check_refused(&fake, -EFAULT);
	fake_code(&fake, 12);
	fake.filename[fake.offsets.unicode_state] = 0;
	check_refused(&fake, -EINVAL);
	fake_code(&fake, 12);
	fake_put(fake.object, fake.offsets.code_linetable, 8, 8);
	check_refused(&fake, -EFAULT);
}

static void line_tables_are_bounded(void **state)
{
	struct fake_code fake;
	struct code code;

	(void)state;
	fake_code(&fake, 12);
	fake_put(fake.table, fake.offsets.varobject_size, 0, 8);
	assert_int_equal(read_fake(&fake, FAKE_CODE_TYPE, &code), 0);
	assert_int_equal(code.line_table_length, 0);
	code__free(&code);
	fake_put(fake.table, fake.offsets.varobject_size, LINE_TABLE_BYTES_MAX + 1, 8);
	check_refused(&fake, -EINVAL);
	fake_put(fake.table, fake.offsets.varobject_size, UINT64_MAX, 8);
	check_refused(&fake, -EINVAL);
	fake_code(&fake, 12);
	fake_put(fake.object, fake.offsets.code_linetable, (uintptr_t)sbrk(0) + (1ULL << 40), 8);
	check_refused(&fake, -EFAULT);
}

static void impossible_offsets_are_refused(void **state)
{
	struct fake_code fake;

	(void)state;
	fake_code(&fake, 12);
	fake.offsets.code_linetable = 0xfff0;
	check_refused(&fake, -EINVAL);
	fake.offsets.code_linetable = UINT32_MAX;
	check_refused(&fake, -EINVAL);
	fake_code(&fake, 12);
	fake.offsets.code_firsttraceable = 0xfff0;
	check_refused(&fake, -EINVAL);
}

static void nothing_beyond_the_object_is_read(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *pages =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	munmap(pages + page, page);
	for (int minor = 6; minor <= 15; minor++) {
		struct fake_code fake;
		struct code code;
		uint8_t *object;
		size_t bytes;

		fake_code(&fake, minor);
		bytes = 8 + (fake.offsets.code_firsttraceable == OFFSET_ABSENT
				     ? fake.offsets.code_linetable
				     : fake.offsets.code_firsttraceable);
		object = pages + page - bytes;
		memcpy(object, fake.object, bytes);
		assert_int_equal(code__read(getpid(), &fake.offsets, FAKE_CODE_TYPE,
					    (uintptr_t)object, &code),
				 0);
		code__free(&code);
		assert_int_equal(code__read(getpid(), &fake.offsets, FAKE_CODE_TYPE,
					    (uintptr_t)object + 8, &code),
				 -EFAULT);
	}
	munmap(pages, page);
}

static void an_ended_process_is_reported(void **state)
{
	struct fake_code fake;
	struct code code;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	fake_code(&fake, 12);
	assert_int_equal(code__read(child, &fake.offsets, 0, (uintptr_t)fake.object, &code),
			 -EFAULT);
}

static void any_bytes_are_safe(void **state)
{
	size_t accepted = 0;

	(void)state;
	srand(12);
	for (int round = 0; round < FUZZ_ROUNDS; round++) {
		struct fake_code fake;
		struct code code;
		uint8_t *bytes = (uint8_t *)&fake;
		size_t start = sizeof(fake.offsets);

		fake_code(&fake, 7 + round % 9);
		for (int change = rand() % 16; change >= 0; change--)
			bytes[start + rand() % (sizeof(fake) - start)] = rand();
		if (read_fake(&fake, round % 2 ? FAKE_CODE_TYPE : 0, &code) == 0)
			accepted++;
		code__free(&code);
	}
	assert_in_range(accepted, 1, FUZZ_ROUNDS - 1);
}

static void generated_code_is_recognized(void **state)
{
	static const struct {
		const char *name, *filename;
		bool generated;
	} codes[] = {
		{ "__create_fn__.<locals>.__init__", "<string>", true },
		{ "__init__", "<attrs generated init shop.Order>", true },
		{ "<lambda>", "<string>", true },
		{ "make.<locals>.<lambda>", "<string>", true },
		{ "Order.total", "<string>", false },
		{ "<module>", "<string>", false },
		{ "f.<locals>.<genexpr>", "<string>", false },
		{ "_find_and_load", "<frozen importlib._bootstrap>", false },
		{ "make.<locals>.f", "/srv/app.py", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		const struct code code = { .name = (char *)codes[i].name,
					   .filename = (char *)codes[i].filename };

		assert_int_equal(code__is_generated(&code), codes[i].generated);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_code_is_recognized),
		cmocka_unit_test(every_version_is_read),
		cmocka_unit_test(freed_code_is_recognized),
		cmocka_unit_test(freed_code_is_recognized_without_a_gil),
		cmocka_unit_test(copies_of_every_version_are_decoded),
		cmocka_unit_test(code_of_2_7_is_read),
		cmocka_unit_test(positions_in_the_original_are_unchanged),
		cmocka_unit_test(positions_in_copies_become_those_in_the_original),
		cmocka_unit_test(code_that_is_never_traced_is_hidden),
		cmocka_unit_test(none_is_read_as_hidden_code_since_3_13),
		cmocka_unit_test(the_type_is_checked_if_known),
		cmocka_unit_test(first_lines_may_be_any_number),
		cmocka_unit_test(bad_members_are_refused),
		cmocka_unit_test(line_tables_are_bounded),
		cmocka_unit_test(impossible_offsets_are_refused),
		cmocka_unit_test(nothing_beyond_the_object_is_read),
		cmocka_unit_test(an_ended_process_is_reported),
		cmocka_unit_test(any_bytes_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
