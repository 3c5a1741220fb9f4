// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "recording/rate.h"

/* What is said of EVENTS in SECONDS of CPU time at 100 Hz. */
static void judge(uint64_t events, double seconds, char *said, size_t size)
{
	struct ledger ledger = { .rate_hz = 100, .events = events };
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t length;

	dup2(fileno(file), STDERR_FILENO);
	rate__judge(&ledger, seconds);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(file);
	length = fread(said, 1, size - 1, file);
	said[length] = '\0';
	fclose(file);
}

static void missing_ticks_are_told(void **state)
{
	char said[1024];

	(void)state;
	judge(560, 10, said, sizeof(said));
	assert_non_null(strstr(said, "56%"));
	assert_non_null(strstr(said, "10.0 s of CPU time"));
}

static void what_is_as_it_should_be_is_not_told(void **state)
{
	char said[1024];

	(void)state;
	judge(1000, 10, said, sizeof(said));
	assert_string_equal(said, "");
	judge(900, 10, said, sizeof(said));
	assert_string_equal(said, "");
}

/* Few samples, or a CPU time that is not known. */
static void what_cannot_be_judged_is_not(void **state)
{
	char said[1024];

	(void)state;
	judge(10, 1, said, sizeof(said));
	assert_string_equal(said, "");
	judge(10, -1, said, sizeof(said));
	assert_string_equal(said, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_ticks_are_told),
		cmocka_unit_test(what_is_as_it_should_be_is_not_told),
		cmocka_unit_test(what_cannot_be_judged_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
