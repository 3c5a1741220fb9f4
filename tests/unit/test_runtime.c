// SPDX-License-Identifier: BSD-2-Clause
/* A hundred processes per second may map the same twenty files, so a look at one more must be
 * cheap. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "handings.h"
#include "python/runtime.h"

static void known_files_are_not_opened_again(void **state)
{
	struct runtime runtime;
	int first;

	(void)state;
	/* Only root may open mapped files. */
	if (geteuid())
		skip();
	assert_int_equal(runtime__find(getpid(), &runtime), -ENOEXEC);
	first = handings;
	handings = 0;
	assert_int_equal(runtime__find(getpid(), &runtime), -ENOEXEC);
	assert_true(first > HANDINGS_MAX);
	assert_in_range(handings, 1, HANDINGS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_files_are_not_opened_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
