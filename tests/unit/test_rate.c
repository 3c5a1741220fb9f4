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

/* SAID: what rate__judge logs about EVENTS in SECONDS of CPU time at 100 Hz. */
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

static void missing_events_are_reported(void **state)
{
	char said[1024];

	(void)state;
	judge(560, 10, said, sizeof(said));
	assert_non_null(strstr(said, "56%"));
	assert_non_null(strstr(said, "10.0 s of CPU time"));
}

static void a_rate_that_was_kept_is_not_reported(void **state)
{
	char said[1024];

	(void)state;
	judge(1000, 10, said, sizeof(said));
	assert_string_equal(said, "");
	judge(900, 10, said, sizeof(said));
	assert_string_equal(said, "");
}

/* There are too few samples, or the CPU time is unknown. */
static void too_little_data_is_not_judged(void **state)
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
		cmocka_unit_test(missing_events_are_reported),
		cmocka_unit_test(a_rate_that_was_kept_is_not_reported),
		cmocka_unit_test(too_little_data_is_not_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
