// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "reading/reader.h"
#include "reading/target_pages.h"

#define PAGE_BYTES 4096
#define PAGES	   3000 /* more than the cache keeps */

static uint8_t *memory;

/* The last page cannot be read. */
static int set_up(void **state)
{
	(void)state;
	memory = mmap(NULL, (PAGES + 1) * PAGE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(memory + PAGES * PAGE_BYTES, PAGE_BYTES, PROT_NONE);
	target_pages__begin(getpid());
	return memory == MAP_FAILED;
}

static int tear_down(void **state)
{
	(void)state;
	reader__relieve();
	return munmap(memory, (PAGES + 1) * PAGE_BYTES);
}

static bool read_at(size_t offset, void *buffer, size_t length)
{
	return target_pages__read((uintptr_t)memory + offset, buffer, length);
}

static void a_page_is_read_once(void **state)
{
	uint8_t byte;

	(void)state;
	memory[10] = 1;
	assert_true(read_at(10, &byte, 1));
	assert_int_equal(byte, 1);
	memory[10] = 2;
	assert_true(read_at(10, &byte, 1));
	assert_int_equal(byte, 1);
	target_pages__begin(getpid());
	assert_true(read_at(10, &byte, 1));
	assert_int_equal(byte, 2);
}

static void a_read_may_span_pages(void **state)
{
	uint8_t bytes[PAGE_BYTES + 2];

	(void)state;
	memory[PAGE_BYTES - 1] = 1;
	memory[PAGE_BYTES] = 2;
	memory[2 * PAGE_BYTES] = 3;
	assert_true(read_at(PAGE_BYTES - 1, bytes, sizeof(bytes)));
	assert_int_equal(bytes[0], 1);
	assert_int_equal(bytes[1], 2);
	assert_int_equal(bytes[PAGE_BYTES + 1], 3);
}

static void a_partly_unreadable_range_fails(void **state)
{
	uint8_t bytes[2];

	(void)state;
	assert_true(read_at(PAGES * PAGE_BYTES - 2, bytes, 2));
	assert_false(read_at(PAGES * PAGE_BYTES - 1, bytes, 2));
	assert_false(read_at(PAGES * PAGE_BYTES, bytes, 1));
	assert_false(target_pages__read(UINT64_MAX - 1, bytes, 2));
}

static void reads_more_pages_than_the_cache_keeps(void **state)
{
	uint16_t word;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint16_t i = 0; i < PAGES; i++) {
			memcpy(memory + (size_t)i * PAGE_BYTES, &i, sizeof(i));
			assert_true(read_at((size_t)i * PAGE_BYTES, &word, sizeof(word)));
			assert_int_equal(word, i);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_page_is_read_once),
		TEST(a_read_may_span_pages),
		TEST(a_partly_unreadable_range_fails),
		TEST(reads_more_pages_than_the_cache_keeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
