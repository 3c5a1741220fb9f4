// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "reading/target_memory.h"
#include "reading/target_pages.h"

#define PAGE_BYTES 4096

/* A power of two. */
#define PAGES_MAX 1024

/* Each page has one place, which it takes from the page that is there. */
static pid_t target;
static uint64_t numbers[PAGES_MAX]; /* plus 1; 0: free */
static bool readable[PAGES_MAX];
static uint8_t bytes[PAGES_MAX][PAGE_BYTES];

void target_pages__begin(pid_t pid)
{
	target = pid;
	memset(numbers, 0, sizeof(numbers));
}

/* The place of page NUMBER, which is read unless it is there.  It is entered once it was read: the
 * errand may end while it is awaited. */
static size_t place_of(uint64_t number)
{
	size_t place = number * 0x9e3779b97f4a7c15ULL >> 32 & (PAGES_MAX - 1);

	if (numbers[place] == number + 1)
		return place;
	numbers[place] = 0;
	readable[place] = !target_memory__read(target, number * PAGE_BYTES, bytes[place],
					       sizeof(bytes[place]));
	numbers[place] = number + 1;
	return place;
}

bool target_pages__read(uint64_t address, void *buffer, size_t length)
{
	for (size_t done = 0, part; done < length; done += part) {
		size_t at = (address + done) % PAGE_BYTES;
		size_t place = place_of((address + done) / PAGE_BYTES);

		part = PAGE_BYTES - at < length - done ? PAGE_BYTES - at : length - done;
		if (!readable[place])
			return false;
		memcpy((uint8_t *)buffer + done, bytes[place] + at, part);
	}
	return true;
}
