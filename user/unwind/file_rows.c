// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "unwind/file_rows.h"
#include "unwind/plumbing.h"

/* Rows from ADDRESS on have these MARKS. */
struct marked {
	uint64_t address;
	uint32_t marks;
};

/* From 3.6 on, PyEval_EvalFrameEx only calls the eval loop; few builds give it a frame. */
static bool has_eval_loop_of_3_6(const struct symbols *symbols)
{
	uint64_t start, size;

	for (size_t i = 0; i < symbols__count(symbols); i++)
		if (strcmp(symbols__at(symbols, i, &start, &size), "_PyEval_EvalFrameDefault") == 0)
			return true;
	return false;
}

static uint32_t marks_of(const char *name, bool of_3_6)
{
	bool is_wrapper = of_3_6 && strncmp(name, "PyEval_", strlen("PyEval_")) == 0;

	return (plumbing__is_name(name) ? ROW_PLUMBING : 0) |
	       (plumbing__is_eval_loop(name) && !is_wrapper ? ROW_EVAL_LOOP : 0);
}

/* The addresses where marks change.  The caller frees. */
static struct marked *list_marks(const struct symbols *symbols, bool of_greenlet, size_t *count)
{
	size_t functions = symbols__count(symbols), at = 1;
	struct marked *list = xcalloc(2 * functions + 1, sizeof(*list));
	bool of_3_6 = has_eval_loop_of_3_6(symbols);
	uint32_t unnamed = of_greenlet ? 0 : ROW_PLUMBING;
	uint64_t end = 0;

	list[0].marks = unnamed;
	for (size_t i = 0; i < functions; i++) {
		uint64_t start, size;
		const char *name = symbols__at(symbols, i, &start, &size);
		uint32_t base = plumbing__is_stack_base(name) ? ROW_STACK_BASE : 0;

		/* Of overlapping functions the first one counts. */
		if (start < end)
			continue;
		if (list[at - 1].address == start && at > 1)
			at--;
		end = start + size;
		list[at++] = (struct marked){ start, of_greenlet ? base : marks_of(name, of_3_6) };
		list[at++] = (struct marked){ end, unnamed };
	}
	*count = at;
	return list;
}

void file_rows__mark(struct cfi_rows *rows, const struct symbols *symbols, bool of_greenlet)
{
	size_t mark_count, marked = 0, capacity = 0, count = 0;
	struct marked *list = list_marks(symbols, of_greenlet, &mark_count);
	struct cfi_row *all = NULL;

	for (size_t i = 0; i < rows->count; i++) {
		uint64_t address = rows->all[i].address;
		/* The last row is of no code: symbols behind it must not add pages. */
		uint64_t end = i + 1 < rows->count ? rows->all[i + 1].address : address + 1;

		while (marked + 1 < mark_count && list[marked + 1].address <= address)
			marked++;
		for (bool begins = true;; begins = false) {
			uint32_t marks = list[marked].marks, word = rows->all[i].word | marks;

			if (begins || all[count - 1].word != word) {
				all = xgrow(all, &capacity, count + 1, sizeof(*all));
				all[count++] = (struct cfi_row){ address, word };
			}
			if (marked + 1 == mark_count || list[marked + 1].address >= end)
				break;
			address = list[++marked].address;
		}
	}
	free(list);
	free(rows->all);
	rows->all = all;
	rows->count = count;
	rows->capacity = capacity;
}

static uint64_t page_of(uint64_t address)
{
	return address / UNWIND_TEXT_PAGE;
}

struct placing {
	struct chunks *chunks;
	uint32_t first; /* the number of the first word */
	uint32_t count; /* words so far */
};

static uint32_t *word_at(const struct chunks *chunks, uint32_t number)
{
	return chunks__at(chunks, sizeof(uint32_t), number);
}

static void put(struct placing *placing, uint32_t word)
{
	*word_at(placing->chunks, placing->first + placing->count++) = word;
}

/* Begins a page with this number of ROWS.  They and the row before them must lie in one chunk.  If
 * they do not fit into this one, it is filled up, and a copy of the row before them begins the
 * next. */
static void begin_page(struct placing *placing, size_t rows)
{
	uint32_t number = placing->first + placing->count - 1;
	uint32_t last = *word_at(placing->chunks, number);

	if (number / CHUNK_ROWS == (number + rows) / CHUNK_ROWS)
		return;
	while ((placing->first + placing->count) % CHUNK_ROWS)
		put(placing, last);
	put(placing, last);
}

/* The number of rows from row I on in the same page. */
static size_t rows_of_page(const struct cfi_rows *rows, size_t i)
{
	size_t end = i;

	while (end < rows->count &&
	       page_of(rows->all[end].address) == page_of(rows->all[i].address))
		end++;
	return end - i;
}

/* Words for the rows, with the most that begin_page can add. */
static uint64_t words_for(const struct cfi_rows *rows)
{
	uint64_t words = rows->count + 1;

	return words + (words / CHUNK_ROWS + 2) * (UNWIND_ROWS_A_PAGE + 1);
}

int file_rows__store(struct chunks *chunks, const struct cfi_rows *rows, struct unwind_file *file)
{
	uint64_t first_page, pages, words = words_for(rows);
	struct placing placing = { .chunks = chunks };
	uint32_t directory, page = 0;
	int error;

	if (!rows->count)
		return -ENOENT;
	first_page = page_of(rows->all[0].address);
	pages = page_of(rows->all[rows->count - 1].address) - first_page + 1;
	/* A few functions may be spread over gigabytes. */
	if (words >= DIRECTORY_FIRST_LIMIT || pages + words > chunks->limit / 2 / sizeof(uint32_t))
		return -E2BIG;
	error = chunks__take(chunks, sizeof(uint32_t), pages, false, &directory);
	if (!error)
		error = chunks__take(chunks, sizeof(uint32_t), words, false, &placing.first);
	if (error)
		return error;
	put(&placing, ROW_NUMBERED(ROW_NONE, ROW_NO_CODE));
	for (size_t i = 0; i < rows->count;) {
		uint64_t wanted = page_of(rows->all[i].address) - first_page;
		size_t count = rows_of_page(rows, i);

		for (; page < wanted; page++)
			*word_at(chunks, directory + page) = DIRECTORY_WORD(placing.count, 0);
		begin_page(&placing, count);
		*word_at(chunks, directory + page++) = DIRECTORY_WORD(placing.count, count);
		for (size_t end = i + count; i < end; i++)
			put(&placing,
			    rows->all[i].word | (rows->all[i].address % UNWIND_TEXT_PAGE));
	}
	file->base = first_page * UNWIND_TEXT_PAGE;
	file->directory = directory;
	file->rows = placing.first;
	file->pages = pages;
	return 0;
}
