// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_python.h"
#include "python/dict.h"

#define MANY 700

static struct object_reader make_reader(const struct fake_python *python)
{
	struct object_reader reader;

	object_reader__init(&reader, getpid(), &python->offsets);
	return reader;
}

static uint64_t find(const struct fake_python *python, const struct dict *dict, const char *name)
{
	struct object_reader reader = make_reader(python);
	uint64_t key = 0;

	return dict__find(&reader, dict, name, &key);
}

static int read_dict(const struct fake_python *python, uint64_t address, struct dict *dict)
{
	struct object_reader reader = make_reader(python);

	return dict__read(&reader, address, dict);
}

static void check_many(struct fake_python *python, bool unicode)
{
	uint64_t keys[MANY], values[MANY];
	char name[16];

	for (size_t count = 0; count <= MANY; count = count ? 5 * count : 1) {
		struct dict dict;

		for (size_t i = 0; i < count; i++) {
			snprintf(name, sizeof(name), "key%zu", i);
			keys[i] = fake_text(python, name);
			values[i] = 1000 + i;
		}
		assert_int_equal(
			read_dict(python, fake_dict(python, keys, values, count, unicode), &dict),
			0);
		assert_int_equal(dict.count, count);
		for (size_t i = 0; i < count; i += 1 + count / 7) {
			snprintf(name, sizeof(name), "key%zu", i);
			assert_int_equal(find(python, &dict, name), 1000 + i);
		}
		assert_int_equal(find(python, &dict, "key"), 0);
		assert_int_equal(find(python, &dict, "no key"), 0);
		dict__free(&dict);
	}
}

static void every_version_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS; i++) {
		struct offsets offsets = fake_version(i);
		struct fake_python python;

		fake_python__init(&python, &offsets);
		check_many(&python, true);
		check_many(&python, false);
		fake_python__free(&python);
	}
}

static void attributes_are_found_in_every_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS * FAKE_FORMS; i++) {
		struct offsets offsets = fake_version(i / FAKE_FORMS);
		struct fake_python python;
		struct object_reader reader;
		struct dict dict;

		fake_python__init(&python, &offsets);
		reader = make_reader(&python);
		/* For the second instance of a class, the keys are remembered. */
		for (uint64_t first = 10; first <= 20; first += 10) {
			uint64_t keys[] = { fake_text(&python, "_one"), fake_text(&python, "_two"),
					    fake_text(&python, "_three") };
			uint64_t values[] = { first, first + 1, 0 };
			uint64_t object = fake_instance(&python, keys, values, 3, i % FAKE_FORMS);

			assert_int_equal(dict__read_attributes(&reader, object, &dict), 0);
			assert_int_equal(find(&python, &dict, "_one"), first);
			assert_int_equal(find(&python, &dict, "_two"), first + 1);
			assert_int_equal(find(&python, &dict, "_three"), 0);
			dict__free(&dict);
		}
		fake_python__free(&python);
	}
}

static void a_known_key_is_tried_first(void **state)
{
	struct offsets offsets = fake_offsets(13);
	struct fake_python python;
	struct object_reader reader;
	uint64_t keys[2], values[] = { 7, 8 }, key;
	struct dict dict;

	(void)state;
	fake_python__init(&python, &offsets);
	reader = make_reader(&python);
	keys[0] = fake_text(&python, "first");
	keys[1] = fake_text(&python, "second");
	assert_int_equal(read_dict(&python, fake_dict(&python, keys, values, 2, true), &dict), 0);
	key = 0;
	assert_int_equal(dict__find(&reader, &dict, "second", &key), 8);
	assert_int_equal(key, keys[1]);
	/* A key that the dict does not have does no harm. */
	key = 0x1234;
	assert_int_equal(dict__find(&reader, &dict, "first", &key), 7);
	assert_int_equal(key, keys[0]);
	dict__free(&dict);
	fake_python__free(&python);
}

/* Sets a field of the table of a dict, and checks that this is refused. */
static void check_refused(unsigned int minor, size_t field, uint64_t value, size_t width, int error)
{
	struct offsets offsets = fake_offsets(minor);
	struct fake_python python;
	uint64_t keys[1], values[] = { 7 }, table, dict_at;
	struct dict dict;
	uint32_t offset;

	memcpy(&offset, (uint8_t *)&offsets + field, sizeof(offset));
	fake_python__init(&python, &offsets);
	keys[0] = fake_text(&python, "key");
	dict_at = fake_dict(&python, keys, values, 1, true);
	assert_int_equal(read_dict(&python, dict_at, &dict), 0);
	dict__free(&dict);
	memcpy(&table, (uint8_t *)(uintptr_t)dict_at + offsets.dict_keys, sizeof(table));
	fake_put((uint8_t *)(uintptr_t)table, offset, value, width);
	assert_int_equal(read_dict(&python, dict_at, &dict), error);
	assert_null(dict.keys);
	fake_python__free(&python);
}

static void impossible_tables_are_refused(void **state)
{
	size_t entries = offsetof(struct offsets, keys_nentries);

	(void)state;
	check_refused(8, entries, DICT_ENTRIES_MAX + 1, 8, -EINVAL);
	check_refused(8, entries, UINT64_MAX, 8, -EINVAL);
	check_refused(8, offsetof(struct offsets, keys_size), 1ull << 62, 8, -EINVAL);
	check_refused(13, entries, DICT_ENTRIES_MAX + 1, 8, -EINVAL);
	check_refused(13, offsetof(struct offsets, keys_log2_index_bytes), 255, 1, -EINVAL);
}

static void other_objects_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS; i++) {
		struct offsets offsets = fake_version(i);
		struct fake_python python;
		struct object_reader reader;
		struct dict dict;

		fake_python__init(&python, &offsets);
		reader = make_reader(&python);
		assert_int_equal(read_dict(&python, fake_text(&python, "text"), &dict), -EINVAL);
		assert_int_equal(read_dict(&python, 0, &dict), -EFAULT);
		assert_int_equal(read_dict(&python, UINT64_MAX - 8, &dict), -EFAULT);
		assert_int_equal(dict__read_attributes(&reader, 8, &dict), -EFAULT);
		assert_true(dict__read_attributes(&reader, fake_text(&python, "text"), &dict) < 0);
		fake_python__free(&python);
	}
}

static void check_int(struct fake_python *python, uint64_t address, uint64_t expected)
{
	struct object_reader reader = make_reader(python);
	uint64_t value;

	object__ints(&reader, &address, 1, &value);
	assert_int_equal(value, expected);
}

static void ints_are_read(void **state)
{
	static const uint64_t values[] = { 0,	       1,	   255,		  (1ull << 30) - 1,
					   1ull << 30, 1ull << 47, 0x7f1234567890 };

	(void)state;
	for (size_t i = 0; i < FAKE_VERSIONS; i++) {
		struct offsets offsets = fake_version(i);
		struct fake_python python;

		fake_python__init(&python, &offsets);
		for (size_t j = 0; j < sizeof(values) / sizeof(values[0]); j++)
			check_int(&python, fake_int(&python, values[j], 0), values[j]);
		check_int(&python, fake_text(&python, "7"), INT_UNKNOWN);
		check_int(&python, 0, INT_UNKNOWN);
		if (offsets.int_value == OFFSET_ABSENT) {
			check_int(&python, fake_int(&python, 1ull << 60, 0), INT_UNKNOWN);
			check_int(&python, fake_int(&python, 5, 2), INT_UNKNOWN);
		}
		fake_python__free(&python);
	}
}

static void an_unreadable_int_does_not_affect_others(void **state)
{
	struct offsets offsets = fake_offsets(12);
	struct fake_python python;
	struct object_reader reader;
	uint64_t addresses[3000], values[3000];

	(void)state;
	fake_python__init(&python, &offsets);
	reader = make_reader(&python);
	for (size_t i = 0; i < 3000; i++)
		addresses[i] = i % 1000 == 500 || i == 1024 ? 16 : fake_int(&python, i, 0);
	object__ints(&reader, addresses, 3000, values);
	for (size_t i = 0; i < 3000; i++)
		assert_int_equal(values[i], addresses[i] == 16 ? INT_UNKNOWN : i);
	fake_python__free(&python);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_is_read),
		cmocka_unit_test(attributes_are_found_in_every_form),
		cmocka_unit_test(a_known_key_is_tried_first),
		cmocka_unit_test(impossible_tables_are_refused),
		cmocka_unit_test(other_objects_are_refused),
		cmocka_unit_test(ints_are_read),
		cmocka_unit_test(an_unreadable_int_does_not_affect_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
