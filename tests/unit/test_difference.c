// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "output/output.h"
#include "synthetic.h"

/* Ten seconds at 10 Hz: a sample is one percent of a CPU's time. */
static struct profile *make(uint64_t in_fib, uint64_t in_load)
{
	struct profile *profile = synthetic__new();
	uint32_t thread = synthetic__thread(profile, 1, "python3 app.py", 1, "");
	/* Lines move from one version of a program to the next. */
	uint32_t first_line = 1 + in_fib;
	uint32_t main = synthetic__location(profile, "main", "/srv/", "app.py", 1, 10);
	uint32_t fib = synthetic__location(profile, "fib", "/srv/", "app.py", first_line, 9);
	uint32_t load = synthetic__location(profile, "load\n", "/srv/", "load.py", 1, 2);

	profile->rate_hz = 10;
	profile->duration_ns = 10 * 1000000000LL;
	if (in_fib)
		synthetic__add(profile, OUTCOME_PYTHON, thread, (uint32_t[]){ fib, main }, 2,
			       in_fib);
	if (in_load)
		synthetic__add(profile, OUTCOME_PYTHON, thread, (uint32_t[]){ load, main }, 2,
			       in_load);
	return profile;
}

static void differs(struct profile *before, struct profile *now, const char *wanted)
{
	const struct output_options options = { .title = "title", .before = before };
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_int_equal(output_text.write(now, &options, file), 0);
	fclose(file);
	assert_string_equal(text, wanted);
	free(text);
	profile__free(before);
	profile__free(now);
}

static void the_largest_change_is_first(void **state)
{
	(void)state;
	differs(make(30, 5), make(20, 25),
		"title\nbefore: 35.00 % of a CPU; now: 45.00 % (+10.00)\n\n"
		" self was   self is    change  of total  function\n"
		"    5.00%    25.00%   +20.00%   +20.00%  load\\x0a (load.py)\n"
		"   30.00%    20.00%   -10.00%   -10.00%  fib (app.py)\n"
		"    0.00%     0.00%    +0.00%   +10.00%  main (app.py)\n");
}

static void new_and_gone_functions_are_shown(void **state)
{
	(void)state;
	differs(make(10, 0), make(0, 20),
		"title\nbefore: 10.00 % of a CPU; now: 20.00 % (+10.00)\n\n"
		" self was   self is    change  of total  function\n"
		"    0.00%    20.00%   +20.00%   +20.00%  load\\x0a (load.py)\n"
		"   10.00%     0.00%   -10.00%   -10.00%  fib (app.py)\n"
		"    0.00%     0.00%    +0.00%   +10.00%  main (app.py)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_change_is_first),
		cmocka_unit_test(new_and_gone_functions_are_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
