// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "reading/target_memory.h"
#include "reading/target_pages.h"

#define PAGE_BYTES 4096

/* When they are full, all are read anew. */
#define PAGES_MAX 1024
#define PLACES	  (2 * PAGES_MAX) /* a power of two */

struct page {
	uint64_t number;
	bool readable;
	uint8_t bytes[PAGE_BYTES];
};

struct target_pages {
	pid_t pid;
	size_t count;
	struct page *last;	 /* that was read; NULL: none */
	uint16_t places[PLACES]; /* a hash table of indices into PAGES, plus 1; 0: free */
	struct page pages[PAGES_MAX];
};

struct target_pages *target_pages__new(void)
{
	return xcalloc(1, sizeof(struct target_pages));
}

void target_pages__free(struct target_pages *pages)
{
	free(pages);
}

static void forget_all(struct target_pages *pages)
{
	pages->count = 0;
	pages->last = NULL;
	memset(pages->places, 0, sizeof(pages->places));
}

void target_pages__begin(struct target_pages *pages, pid_t pid)
{
	pages->pid = pid;
	forget_all(pages);
}

static uint16_t *place_of(struct target_pages *pages, uint64_t number)
{
	size_t at = number * 0x9e3779b97f4a7c15ULL >> 32 & (PLACES - 1);

	while (pages->places[at] && pages->pages[pages->places[at] - 1].number != number)
		at = (at + 1) & (PLACES - 1);
	return &pages->places[at];
}

/* Reads page NUMBER.  It is entered once it is there: the errand may end while it is awaited. */
static struct page *read_page(struct target_pages *pages, uint64_t number)
{
	struct page *page;

	if (pages->count == PAGES_MAX)
		forget_all(pages);
	page = &pages->pages[pages->count];
	page->number = number;
	page->readable = !target_memory__read(pages->pid, number * PAGE_BYTES, page->bytes,
					      sizeof(page->bytes));
	*place_of(pages, number) = ++pages->count;
	return page;
}

static const struct page *page_of(struct target_pages *pages, uint64_t number)
{
	uint16_t place;

	if (pages->last && pages->last->number == number)
		return pages->last;
	place = *place_of(pages, number);
	pages->last = place ? &pages->pages[place - 1] : read_page(pages, number);
	return pages->last;
}

bool target_pages__read(struct target_pages *pages, uint64_t address, void *buffer, size_t length)
{
	for (size_t done = 0, part; done < length; done += part) {
		size_t at = (address + done) % PAGE_BYTES;
		const struct page *page = page_of(pages, (address + done) / PAGE_BYTES);

		part = PAGE_BYTES - at < length - done ? PAGE_BYTES - at : length - done;
		if (!page->readable)
			return false;
		memcpy((uint8_t *)buffer + done, page->bytes + at, part);
	}
	return true;
}
