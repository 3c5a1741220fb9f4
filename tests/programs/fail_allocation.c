// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: allocation number $FAIL_ALLOCATION of the program fails.  When it
 * is 0, it says at the end how many there were.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned long failing = -1UL, allocations;

__attribute__((constructor)) static void begin(void)
{
	const char *number = getenv("FAIL_ALLOCATION");

	if (number)
		failing = strtoul(number, NULL, 10);
	allocations = 0;
}

__attribute__((destructor)) static void end(void)
{
	if (!failing)
		fprintf(stderr, "allocations: %lu\n", allocations);
}

static bool fails(void)
{
	if (++allocations != failing)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}
