// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

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

static struct {
	pid_t pid;
	size_t count;
	struct page *last;	 /* that was read; NULL: none */
	uint16_t places[PLACES]; /* a hash table of indices into PAGES, plus 1; 0: free */
	struct page pages[PAGES_MAX];
} cache;

static void forget_all(void)
{
	cache.count = 0;
	cache.last = NULL;
	memset(cache.places, 0, sizeof(cache.places));
}

void target_pages__begin(pid_t pid)
{
	cache.pid = pid;
	forget_all();
}

static uint16_t *place_of(uint64_t number)
{
	size_t at = number * 0x9e3779b97f4a7c15ULL >> 32 & (PLACES - 1);

	while (cache.places[at] && cache.pages[cache.places[at] - 1].number != number)
		at = (at + 1) & (PLACES - 1);
	return &cache.places[at];
}

/* Reads page NUMBER.  It is entered once it is there: the errand may end while it is awaited. */
static struct page *read_page(uint64_t number)
{
	struct page *page;

	if (cache.count == PAGES_MAX)
		forget_all();
	page = &cache.pages[cache.count];
	page->number = number;
	page->readable = !target_memory__read(cache.pid, number * PAGE_BYTES, page->bytes,
					      sizeof(page->bytes));
	*place_of(number) = ++cache.count;
	return page;
}

static const struct page *page_of(uint64_t number)
{
	uint16_t place;

	if (cache.last && cache.last->number == number)
		return cache.last;
	place = *place_of(number);
	cache.last = place ? &cache.pages[place - 1] : read_page(number);
	return cache.last;
}

bool target_pages__read(uint64_t address, void *buffer, size_t length)
{
	for (size_t done = 0, part; done < length; done += part) {
		size_t at = (address + done) % PAGE_BYTES;
		const struct page *page = page_of((address + done) / PAGE_BYTES);

		part = PAGE_BYTES - at < length - done ? PAGE_BYTES - at : length - done;
		if (!page->readable)
			return false;
		memcpy((uint8_t *)buffer + done, page->bytes + at, part);
	}
	return true;
}
