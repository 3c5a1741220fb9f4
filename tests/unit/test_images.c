// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watch/images.h"

#define BIAS  0x555500000000ULL
#define START 0x1000ULL

/* The last file announced to BPF. */
static struct {
	struct file_key key;
	struct text_place text;
	uint32_t image;
	bool other;
} told;

void target_map__know_python(struct target_map *map, const struct file_key *key,
			     struct text_place text, uint32_t image, const struct runtime *runtime)
{
	(void)map;
	(void)runtime;
	told.key = *key;
	told.text = text;
	told.image = image;
	told.other = false;
}

void target_map__know_other(struct target_map *map, const struct file_key *key, bool leads_to_one)
{
	(void)map;
	(void)leads_to_one;
	told.key = *key;
	told.other = true;
}

static struct runtime make_runtime(uint64_t interpreters)
{
	struct runtime runtime = { .interpreters = BIAS + interpreters };

	runtime.text.start = BIAS + START;
	runtime.text.bias = BIAS;
	return runtime;
}

static uint32_t learn(struct images *images, uint64_t inode)
{
	const struct file_key key = { .inode = inode, .device = 1 };
	struct runtime runtime = make_runtime(inode);

	images__learn(images, &key, BIAS + START, true, &runtime);
	assert_int_equal(told.key.inode, inode);
	assert_int_equal(told.text.address, START);
	assert_false(told.other);
	return told.image;
}

static bool is_known(const struct images *images, uint32_t number, uint64_t inode)
{
	struct runtime runtime;

	if (!images__runtime(images, number, 3 * BIAS, &runtime))
		return false;
	assert_int_equal(runtime.interpreters, 3 * BIAS + inode);
	return true;
}

static void learned_files_are_known(void **state)
{
	struct images *images = images__new(NULL);
	const struct file_key key = { .inode = 3 };
	uint32_t first = learn(images, 1), second = learn(images, 2);

	(void)state;
	assert_true(first && second && first != second);
	assert_true(is_known(images, first, 1));
	assert_true(is_known(images, second, 2));
	assert_false(is_known(images, 0, 0));
	assert_false(is_known(images, second + 1, 0));
	images__learn(images, &key, BIAS, false, NULL);
	assert_true(told.other);
	images__free(images);
}

/* The number of files has no limit: the oldest are evicted, and no number is reused. */
static void the_newest_files_are_kept(void **state)
{
	struct images *images = images__new(NULL);
	uint32_t first = learn(images, 1), last = 0, again;

	(void)state;
	for (uint64_t inode = 2; inode <= 3 * IMAGES_MAX; inode++) {
		uint32_t number = learn(images, inode);

		assert_true(number > last);
		last = number;
		assert_true(is_known(images, number, inode));
		assert_int_equal(is_known(images, first, 1), inode <= IMAGES_MAX);
	}
	for (uint32_t number = first; number <= last; number++)
		assert_int_equal(is_known(images, number, number - first + 1),
				 number > last - IMAGES_MAX);
	again = learn(images, 1);
	assert_true(again > last);
	assert_true(is_known(images, again, 1));
	images__free(images);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learned_files_are_known),
		cmocka_unit_test(the_newest_files_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
