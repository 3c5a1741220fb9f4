// SPDX-License-Identifier: BSD-2-Clause
/* BPF finds the rows of a file as they were stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/xalloc.h"
#include "unwind/file_rows.h"
#include "unwind_maps.h"

#define NO_CODE	  ROW_NUMBERED(ROW_NONE, ROW_NO_CODE)
#define BUDGET	  (64ULL << 20)
#define TEXT	  0x401230ULL
#define MANY_ROWS 600000

static struct chunks *chunks;

static uint32_t random_state;

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % limit;
}

static int set_up(void **state)
{
	(void)state;
	random_state = 1;
	chunks = chunks__new(CHUNKS_FD, BUDGET);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	chunks__free(chunks);
	unwind_maps__clear();
	return 0;
}

static void add_row(struct cfi_rows *rows, uint64_t address, uint32_t word)
{
	rows->all = xgrow(rows->all, &rows->capacity, rows->count + 1, sizeof(*rows->all));
	rows->all[rows->count++] = (struct cfi_row){ address, word };
}

/* A word with any kind, marks and numbers. */
static uint32_t random_word(void)
{
	return (random_below(1 << 24) << 8) & ~0xffU;
}

static struct unwind_file store(const struct cfi_rows *rows)
{
	struct unwind_file file = { .rules = 7 };

	assert_int_equal(file_rows__store(chunks, rows, &file), 0);
	assert_int_equal(file.rules, 7);
	assert_int_equal(file.base % UNWIND_TEXT_PAGE, 0);
	return file;
}

static void assert_found(const struct unwind_file *file, const struct cfi_row *row,
			 uint64_t address)
{
	assert_int_equal(unwind_maps__row(file, address),
			 row->word | row->address % UNWIND_TEXT_PAGE);
}

/* Looks up each row at its first, its last and a random address. */
static void assert_stored(const struct unwind_file *file, const struct cfi_rows *rows)
{
	uint64_t first = rows->all[0].address, last = rows->all[rows->count - 1].address;
	uint64_t end = (last / UNWIND_TEXT_PAGE + 1) * UNWIND_TEXT_PAGE;

	for (size_t i = 0; i < rows->count; i++) {
		const struct cfi_row *row = &rows->all[i];
		uint64_t next = i + 1 < rows->count ? row[1].address : end;

		assert_found(file, row, row->address);
		assert_found(file, row, next - 1);
		assert_found(file, row, row->address + random_below(next - row->address));
	}
	/* No code is before the first row, even in its page, nor behind the last page. */
	for (uint64_t at = file->base; at < first; at++)
		assert_int_equal(unwind_maps__row(file, at), NO_CODE);
	assert_int_equal(unwind_maps__row(file, file->base - 1), NO_CODE);
	assert_int_equal(unwind_maps__row(file, 0), NO_CODE);
	assert_int_equal(unwind_maps__row(file, end), NO_CODE);
	assert_int_equal(unwind_maps__row(file, UINT64_MAX), NO_CODE);
}

static void stores_one_row(void **state)
{
	struct cfi_rows rows = { 0 };
	struct unwind_file file;

	(void)state;
	add_row(&rows, TEXT, ROW(ROW_SP, 3, 2));
	file = store(&rows);
	assert_int_equal(file.pages, 1);
	assert_stored(&file, &rows);
	free(rows.all);
}

static void refuses_an_empty_table(void **state)
{
	struct cfi_rows rows = { 0 };
	struct unwind_file file = { 0 };

	(void)state;
	assert_int_equal(file_rows__store(chunks, &rows, &file), -ENOENT);
	assert_int_equal(file.pages, 0);
}

/* A page may have a row at each of its bytes. */
static void stores_full_pages(void **state)
{
	struct cfi_rows rows = { 0 };
	struct unwind_file file;

	(void)state;
	for (uint64_t i = 0; i < 3 * UNWIND_TEXT_PAGE; i++)
		add_row(&rows, 0x1000 + i, random_word());
	file = store(&rows);
	assert_int_equal(file.base, 0x1000);
	assert_int_equal(file.pages, 3);
	assert_stored(&file, &rows);
	free(rows.all);
}

/* In a page where no row begins, the last row before it holds. */
static void stores_empty_pages(void **state)
{
	struct cfi_rows rows = { 0 };
	struct unwind_file file;

	(void)state;
	add_row(&rows, TEXT, ROW(ROW_FP, 2, 2));
	add_row(&rows, TEXT + 10 * UNWIND_TEXT_PAGE, ROW_NUMBERED(ROW_RULE, 9));
	add_row(&rows, TEXT + 3000 * UNWIND_TEXT_PAGE + 7, NO_CODE);
	file = store(&rows);
	assert_int_equal(file.pages, 3001);
	for (uint64_t page = 1; page < 10; page++)
		assert_found(&file, &rows.all[0], TEXT + page * UNWIND_TEXT_PAGE);
	for (uint64_t page = 11; page < 3000; page++)
		assert_found(&file, &rows.all[1], TEXT + page * UNWIND_TEXT_PAGE);
	assert_stored(&file, &rows);
	free(rows.all);
}

/* Adds random rows: dense, sparse, and with empty pages between them. */
static void add_many(struct cfi_rows *rows, size_t count)
{
	uint64_t address = TEXT + random_below(UNWIND_TEXT_PAGE);
	uint32_t spread = 1;

	for (size_t i = 0; i < count; i++) {
		if (i % 1000 == 0)
			spread = 1 + random_below(16);
		add_row(rows, address, random_word());
		address += 1 + random_below(spread);
		if (!random_below(500))
			address += random_below(20 * UNWIND_TEXT_PAGE);
	}
}

static void stores_more_than_a_chunk(void **state)
{
	struct cfi_rows rows[2] = { 0 };
	struct unwind_file files[2];

	(void)state;
	assert_true(MANY_ROWS > 2 * CHUNK_ROWS);
	for (int i = 0; i < 2; i++) {
		add_many(&rows[i], MANY_ROWS);
		files[i] = store(&rows[i]);
	}
	/* Neither file has overwritten the other. */
	for (int i = 0; i < 2; i++) {
		assert_stored(&files[i], &rows[i]);
		free(rows[i].all);
	}
}

/* The end of a chunk is at many places among the rows of full pages, and among the words of the
 * directory. */
static void stores_across_the_end_of_a_chunk(void **state)
{
	struct cfi_rows rows = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 2 * UNWIND_TEXT_PAGE; i++)
		add_row(&rows, 0x1080 + i, random_word());
	for (uint32_t left = 0; left < 3 * UNWIND_TEXT_PAGE; left += 1 + left % 3) {
		struct unwind_file file;
		uint32_t number;

		assert_int_equal(
			chunks__take(chunks, sizeof(uint32_t), CHUNK_ROWS - left, false, &number),
			0);
		file = store(&rows);
		assert_stored(&file, &rows);
		chunks__begin_anew(chunks);
	}
	free(rows.all);
}

static void refuses_rows_without_room(void **state)
{
	struct cfi_rows rows = { 0 };
	struct unwind_file file = { 0 };
	uint32_t number;

	(void)state;
	add_row(&rows, 0, ROW(ROW_SP, 1, 0));
	add_row(&rows, (uint64_t)UINT32_MAX / 2 * UNWIND_TEXT_PAGE, NO_CODE);
	assert_int_equal(file_rows__store(chunks, &rows, &file), -E2BIG);
	rows.all[1].address = BUDGET / 2 / sizeof(uint32_t) * UNWIND_TEXT_PAGE;
	assert_int_equal(file_rows__store(chunks, &rows, &file), -E2BIG);
	rows.all[1].address = 1;
	assert_int_equal(chunks__take(chunks, 1, BUDGET, false, &number), 0);
	assert_int_equal(file_rows__store(chunks, &rows, &file), -ENOSPC);
	assert_int_equal(file.pages, 0);
	free(rows.all);
}

/* The functions that a file names, in the order of their addresses. */
static struct fake_function {
	uint64_t start, size;
	const char *name;
} functions[16];

static size_t function_count;

WRAP(size_t, symbols__count, const struct symbols *symbols)
{
	(void)symbols;
	return function_count;
}

WRAP(const char *, symbols__at, const struct symbols *symbols, size_t index, uint64_t *start,
     uint64_t *size)
{
	(void)symbols;
	*start = functions[index].start;
	*size = functions[index].size;
	return functions[index].name;
}

static void name_functions(const struct fake_function *named, size_t count)
{
	memcpy(functions, named, count * sizeof(*named));
	function_count = count;
}

#define NAME_FUNCTIONS(...)                                     \
	name_functions((struct fake_function[]){ __VA_ARGS__ }, \
		       sizeof((struct fake_function[]){ __VA_ARGS__ }) / sizeof(*functions))

#define PLUMBING  "PyObject_Call"
#define EVAL_LOOP "_PyEval_EvalFrameDefault"
#define OWN_NAME  "list_sort"
#define EVAL_ROW  (ROW_PLUMBING | ROW_EVAL_LOOP)

/* Each address from START up to END, exclusive, has these marks. */
static void assert_marked(const struct cfi_rows *rows, uint64_t start, uint64_t end, uint32_t marks)
{
	for (uint64_t address = start; address < end; address++) {
		size_t i = rows->count;

		while (i && rows->all[i - 1].address > address)
			i--;
		assert_true(i);
		assert_int_equal(rows->all[i - 1].word & EVAL_ROW, marks);
	}
}

static void assert_sound(const struct cfi_rows *rows)
{
	for (size_t i = 1; i < rows->count; i++) {
		assert_true(rows->all[i - 1].address < rows->all[i].address);
	}
}

/* A row for each of three functions of 0x40 bytes, from 0x1000 on, and no code behind them. */
static struct cfi_rows three_rows(void)
{
	struct cfi_rows rows = { 0 };

	for (uint32_t i = 0; i < 3; i++)
		add_row(&rows, 0x1000 + 0x40 * i, ROW(ROW_SP, i + 1, 0));
	add_row(&rows, 0x10c0, NO_CODE);
	return rows;
}

static void marks_functions_by_their_names(void **state)
{
	struct cfi_rows rows = three_rows();

	(void)state;
	NAME_FUNCTIONS({ 0x1000, 0x40, OWN_NAME }, { 0x1040, 0x40, PLUMBING },
		       { 0x1080, 0x40, EVAL_LOOP });
	file_rows__mark(&rows, NULL, false);
	assert_sound(&rows);
	assert_int_equal(rows.count, 4);
	assert_marked(&rows, 0x1000, 0x1040, 0);
	assert_marked(&rows, 0x1040, 0x1080, ROW_PLUMBING);
	assert_marked(&rows, 0x1080, 0x10c0, EVAL_ROW);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rows.all[i].word & ~EVAL_ROW, ROW(ROW_SP, i + 1, 0));
	assert_int_equal(rows.all[3].word & ~EVAL_ROW, NO_CODE);
	free(rows.all);
}

/* Before the first named function, between two of them, and in a file without names. */
static void marks_unnamed_code_as_plumbing(void **state)
{
	struct cfi_rows rows = three_rows();

	(void)state;
	NAME_FUNCTIONS({ 0x1010, 0x10, OWN_NAME }, { 0x1050, 0x20, OWN_NAME });
	file_rows__mark(&rows, NULL, false);
	assert_sound(&rows);
	assert_marked(&rows, 0x1000, 0x1010, ROW_PLUMBING);
	assert_marked(&rows, 0x1010, 0x1020, 0);
	assert_marked(&rows, 0x1020, 0x1050, ROW_PLUMBING);
	assert_marked(&rows, 0x1050, 0x1070, 0);
	assert_marked(&rows, 0x1070, 0x10c0, ROW_PLUMBING);
	free(rows.all);

	rows = three_rows();
	function_count = 0;
	file_rows__mark(&rows, NULL, false);
	assert_sound(&rows);
	assert_int_equal(rows.count, 4);
	assert_marked(&rows, 0x1000, 0x10c0, ROW_PLUMBING);
	free(rows.all);
}

/* In the greenlet module, nothing else is marked. */
static void marks_where_greenlets_begin(void **state)
{
	struct cfi_rows rows = three_rows();

	(void)state;
	NAME_FUNCTIONS({ 0x1000, 0x40, PLUMBING }, { 0x1048, 0x30, "g_initialstub" },
		       { 0x1080, 0x20, EVAL_LOOP });
	file_rows__mark(&rows, NULL, true);
	assert_sound(&rows);
	assert_marked(&rows, 0x1000, 0x1048, 0);
	assert_marked(&rows, 0x1048, 0x1078, ROW_STACK_BASE);
	assert_marked(&rows, 0x1078, 0x10c0, 0);
	free(rows.all);
}

/* A row that covers several functions is split.  A function with several rows keeps them. */
static void splits_rows_where_marks_change(void **state)
{
	struct cfi_rows rows = { 0 };

	(void)state;
	add_row(&rows, 0x1000, ROW(ROW_SP, 1, 0));
	add_row(&rows, 0x1030, ROW(ROW_SP, 2, 0));
	add_row(&rows, 0x1040, NO_CODE);
	NAME_FUNCTIONS({ 0x1000, 0x10, OWN_NAME }, { 0x1010, 0x10, EVAL_LOOP },
		       { 0x1020, 0x20, OWN_NAME });
	file_rows__mark(&rows, NULL, false);
	assert_sound(&rows);
	assert_int_equal(rows.count, 5);
	assert_marked(&rows, 0x1000, 0x1010, 0);
	assert_marked(&rows, 0x1010, 0x1020, EVAL_ROW);
	assert_marked(&rows, 0x1020, 0x1040, 0);
	assert_int_equal(rows.all[2].word, ROW(ROW_SP, 1, 0));
	assert_int_equal(rows.all[3].word, ROW(ROW_SP, 2, 0));
	free(rows.all);
}

/* The first one counts up to its end, and the next one from there. */
static void takes_the_first_of_overlapping_functions(void **state)
{
	struct cfi_rows rows = three_rows();

	(void)state;
	NAME_FUNCTIONS({ 0x1000, 0x60, OWN_NAME }, { 0x1020, 0x80, EVAL_LOOP },
		       { 0x1060, 0x20, EVAL_LOOP }, { 0x1070, 0, PLUMBING },
		       { 0x1080, 0, OWN_NAME }, { 0x1090, 0x10, OWN_NAME });
	file_rows__mark(&rows, NULL, false);
	assert_sound(&rows);
	assert_marked(&rows, 0x1000, 0x1060, 0);
	assert_marked(&rows, 0x1060, 0x1080, EVAL_ROW);
	assert_marked(&rows, 0x1080, 0x1090, ROW_PLUMBING);
	assert_marked(&rows, 0x1090, 0x10a0, 0);
	assert_marked(&rows, 0x10a0, 0x10c0, ROW_PLUMBING);
	free(rows.all);
}

/* Rows are split only where marks change, and are never joined.  A second call changes nothing. */
static void splits_no_more_than_it_must(void **state)
{
	struct cfi_rows rows = { 0 };
	struct cfi_row before[8];
	size_t count;

	(void)state;
	add_row(&rows, 0x1000, ROW(ROW_SP, 1, 0) | ROW_PLUMBING);
	add_row(&rows, 0x1010, ROW(ROW_SP, 1, 0));
	add_row(&rows, 0x1040, ROW(ROW_SP, 2, 0));
	add_row(&rows, 0x1080, NO_CODE);
	NAME_FUNCTIONS({ 0x1000, 0x20, PLUMBING }, { 0x1020, 0x20, PLUMBING },
		       { 0x1040, 0x40, EVAL_LOOP });
	file_rows__mark(&rows, NULL, false);
	assert_sound(&rows);
	assert_int_equal(rows.count, 4);
	assert_int_equal(rows.all[1].address, 0x1010);
	assert_int_equal(rows.all[2].address, 0x1040);
	count = rows.count;
	memcpy(before, rows.all, count * sizeof(*before));
	file_rows__mark(&rows, NULL, false);
	assert_int_equal(rows.count, count);
	assert_memory_equal(rows.all, before, count * sizeof(*before));
	free(rows.all);
}

/* Functions named where the file has no code add no rows, because rows take memory. */
static void adds_nothing_behind_the_last_row(void **state)
{
	struct cfi_rows rows = three_rows();

	(void)state;
	NAME_FUNCTIONS({ 0x10, 8, OWN_NAME }, { 0x1000, 0x200, OWN_NAME },
		       { 0x7fffffff0000, 0x10, OWN_NAME }, { UINT64_MAX - 8, 8, EVAL_LOOP });
	file_rows__mark(&rows, NULL, false);
	assert_sound(&rows);
	assert_int_equal(rows.count, 4);
	assert_int_equal(rows.all[0].address, 0x1000);
	assert_int_equal(rows.all[3].address, 0x10c0);
	free(rows.all);
}

static void marks_no_rows(void **state)
{
	struct cfi_rows rows = { 0 };

	(void)state;
	NAME_FUNCTIONS({ 0x1000, 0x10, OWN_NAME });
	file_rows__mark(&rows, NULL, false);
	assert_int_equal(rows.count, 0);
	free(rows.all);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(stores_one_row),
		TEST(refuses_an_empty_table),
		TEST(stores_full_pages),
		TEST(stores_empty_pages),
		TEST(stores_more_than_a_chunk),
		TEST(stores_across_the_end_of_a_chunk),
		TEST(refuses_rows_without_room),
		TEST(marks_functions_by_their_names),
		TEST(marks_unnamed_code_as_plumbing),
		TEST(marks_where_greenlets_begin),
		TEST(splits_rows_where_marks_change),
		TEST(takes_the_first_of_overlapping_functions),
		TEST(splits_no_more_than_it_must),
		TEST(adds_nothing_behind_the_last_row),
		TEST(marks_no_rows),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
