// SPDX-License-Identifier: BSD-2-Clause
/* A hundred processes a second may have the same twenty files: to look at one more is cheap. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "python/runtime.h"

/* Handings over to the deputy, of two that there are, and pages that had to be waited for. */
#define WAITS_MAX 8

static long waits(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static void known_files_are_not_opened_again(void **state)
{
	struct runtime runtime;
	long before = waits(), first, second;

	(void)state;
	assert_int_equal(runtime__find(getpid(), &runtime), -ENOEXEC);
	first = waits() - before;
	before = waits();
	assert_int_equal(runtime__find(getpid(), &runtime), -ENOEXEC);
	second = waits() - before;
	assert_true(first > WAITS_MAX);
	assert_true(second <= WAITS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_files_are_not_opened_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
