// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "unwind/chunks.h"
#include "unwind_maps.h"

#define WORD	4
#define MAPPING 32

static int clear(void **state)
{
	(void)state;
	unwind_maps__clear();
	return 0;
}

static uint32_t take(struct chunks *chunks, size_t size, size_t count, bool in_one)
{
	uint32_t number;

	assert_int_equal(chunks__take(chunks, size, count, in_one, &number), 0);
	return number;
}

static void assert_refuses(struct chunks *chunks, size_t size, size_t count, bool in_one, int error)
{
	uint64_t used = chunks->used;
	uint32_t number;

	assert_int_equal(chunks__take(chunks, size, count, in_one, &number), error);
	assert_int_equal(chunks->used, used);
}

static void takes_one_after_another(void **state)
{
	struct chunks *chunks = chunks__new(CHUNKS_FD, CHUNK_SIZE);

	(void)state;
	assert_int_equal(unwind_maps.made, 0);
	assert_int_equal(take(chunks, WORD, 3, false), 0);
	assert_int_equal(take(chunks, WORD, 1, false), 3);
	/* Each element is at a multiple of its size. */
	assert_int_equal(take(chunks, MAPPING, 2, true), 1);
	assert_int_equal(take(chunks, WORD, 1, false), 3 * MAPPING / WORD);
	assert_int_equal(chunks->used, 3 * MAPPING + WORD);
	assert_int_equal(unwind_maps.made, 1);
	chunks__free(chunks);
	chunks__free(NULL);
}

static void writes_reach_the_maps(void **state)
{
	struct chunks *chunks = chunks__new(CHUNKS_FD, 4 * CHUNK_SIZE);
	uint32_t first = take(chunks, WORD, 3 * CHUNK_ROWS, false);

	(void)state;
	assert_int_equal(unwind_maps.made, 3);
	assert_int_equal(unwind_maps.installed, 3);
	for (uint32_t i = 0; i < 3 * CHUNK_ROWS; i += 97)
		*(uint32_t *)chunks__at(chunks, WORD, first + i) = ~i;
	for (uint32_t i = 0; i < 3 * CHUNK_ROWS; i += 97)
		assert_int_equal(unwind_maps__word(first + i), (uint32_t)~i);
	chunks__free(chunks);
}

/* Elements that BPF looks up together do not cross the end of a chunk. */
static void keeps_elements_in_one_chunk(void **state)
{
	struct chunks *chunks = chunks__new(CHUNKS_FD, 8 * CHUNK_SIZE);

	(void)state;
	take(chunks, WORD, CHUNK_ROWS - 2 * MAPPING / WORD, false);
	assert_int_equal(take(chunks, MAPPING, 2, true), CHUNK_MAPPINGS - 2);
	/* Elements that end with the chunk fit in it. */
	assert_int_equal(unwind_maps.made, 1);
	take(chunks, WORD, 1, false);
	assert_int_equal(take(chunks, MAPPING, CHUNK_MAPPINGS, true), 2 * CHUNK_MAPPINGS);
	assert_int_equal(take(chunks, WORD, 2, true), 3 * CHUNK_ROWS);
	assert_int_equal(take(chunks, MAPPING, CHUNK_MAPPINGS - 1, true), 3 * CHUNK_MAPPINGS + 1);
	assert_refuses(chunks, MAPPING, CHUNK_MAPPINGS + 1, true, -ENOSPC);
	chunks__free(chunks);
}

/* The budget allows whole chunks only. */
static void takes_no_more_than_the_budget(void **state)
{
	struct chunks *chunks = chunks__new(CHUNKS_FD, 3 * CHUNK_SIZE - 1);

	(void)state;
	assert_refuses(chunks, WORD, 2 * CHUNK_ROWS + 1, false, -ENOSPC);
	assert_int_equal(unwind_maps.made, 0);
	take(chunks, WORD, 2 * CHUNK_ROWS - 1, false);
	assert_refuses(chunks, WORD, 2, false, -ENOSPC);
	assert_refuses(chunks, MAPPING, 1, true, -ENOSPC);
	take(chunks, WORD, 1, false);
	assert_refuses(chunks, WORD, 1, false, -ENOSPC);
	assert_refuses(chunks, WORD, UINT32_MAX, false, -ENOSPC);
	assert_int_equal(unwind_maps.made, 2);
	chunks__free(chunks);

	chunks = chunks__new(CHUNKS_FD, CHUNK_SIZE - 1);
	assert_refuses(chunks, WORD, 1, false, -ENOSPC);
	chunks__free(chunks);

	/* The map has UNWIND_CHUNKS_MAX entries. */
	chunks = chunks__new(CHUNKS_FD, UINT64_MAX);
	assert_refuses(chunks, WORD, (size_t)UNWIND_CHUNKS_MAX * CHUNK_ROWS + 1, false, -ENOSPC);
	chunks__free(chunks);
}

static void reports_kernel_errors(void **state)
{
	struct chunks *chunks = chunks__new(CHUNKS_FD, 2 * CHUNK_SIZE);

	(void)state;
	unwind_maps.refuse_making = EPERM;
	assert_refuses(chunks, WORD, 1, false, -EPERM);
	unwind_maps.refuse_making = 0;
	unwind_maps.refuse_installing = ENOMEM;
	assert_refuses(chunks, WORD, 1, false, -ENOMEM);
	assert_int_equal(fcntl(unwind_maps.last_fd, F_GETFD), -1);
	unwind_maps.refuse_installing = 0;
	assert_int_equal(take(chunks, WORD, 1, false), 0);
	assert_int_equal(unwind_maps.installed, 1);
	chunks__free(chunks);
	assert_int_equal(fcntl(unwind_maps.last_fd, F_GETFD), -1);
}

/* The chunks are kept.  One is installed again: that waits until running samples have ended. */
static void begins_anew(void **state)
{
	struct chunks *chunks = chunks__new(CHUNKS_FD, 2 * CHUNK_SIZE);

	(void)state;
	chunks__begin_anew(chunks);
	assert_int_equal(unwind_maps.installed, 0);
	take(chunks, WORD, 2 * CHUNK_ROWS, false);
	*(uint32_t *)chunks__at(chunks, WORD, CHUNK_ROWS) = 42;
	chunks__begin_anew(chunks);
	assert_int_equal(chunks->used, 0);
	assert_int_equal(unwind_maps.installed, 3);
	assert_int_equal(unwind_maps.last_installed, 0);
	assert_int_equal(take(chunks, WORD, 2 * CHUNK_ROWS, false), 0);
	assert_int_equal(unwind_maps.made, 2);
	*(uint32_t *)chunks__at(chunks, WORD, CHUNK_ROWS) = 43;
	assert_int_equal(unwind_maps__word(CHUNK_ROWS), 43);
	assert_refuses(chunks, WORD, 1, false, -ENOSPC);
	chunks__free(chunks);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, clear, clear)
	const struct CMUnitTest tests[] = {
		TEST(takes_one_after_another),	   TEST(writes_reach_the_maps),
		TEST(keeps_elements_in_one_chunk), TEST(takes_no_more_than_the_budget),
		TEST(reports_kernel_errors),	   TEST(begins_anew),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
