// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: allocation number $FAIL_ALLOCATION fails, or the first allocation by
 * caller number $FAIL_CALLER. A caller is a place in the code of the program or a library.
 * If FAIL_ALLOCATION is 0, the numbers of allocations and callers are printed at the end.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLERS_MAX 4096

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned long failing = -1UL, allocations, failing_caller = -1UL, caller_count;
static const void *callers[CALLERS_MAX];

static unsigned long read_number(const char *variable)
{
	const char *number = getenv(variable);

	return number ? strtoul(number, NULL, 10) : -1UL;
}

__attribute__((constructor)) static void begin(void)
{
	failing = read_number("FAIL_ALLOCATION");
	failing_caller = read_number("FAIL_CALLER");
	allocations = 0;
	caller_count = 0;
}

__attribute__((destructor)) static void end(void)
{
	if (!failing)
		fprintf(stderr, "allocations: %lu, callers: %lu\n", allocations, caller_count);
}

/* Whether this is the first allocation of the caller that is to fail. */
static bool is_failing_caller(const void *caller)
{
	for (unsigned long i = 0; i < caller_count; i++)
		if (callers[i] == caller)
			return false;
	if (caller_count == CALLERS_MAX)
		return false;
	callers[caller_count++] = caller;
	return caller_count == failing_caller;
}

static bool fails(const void *caller)
{
	bool of_caller = is_failing_caller(caller);

	if (++allocations != failing && !of_caller)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}
