// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "options/moment.h"

#define NOW 1700000000000000000LL

static void is(const char *text, int64_t wanted)
{
	int64_t found;

	assert_true(moment__parse(text, NOW, &found));
	assert_true(found == wanted);
}

static void moments_are_understood(void **state)
{
	(void)state;
	is("90s", NOW - 90 * 1000000000LL);
	is("5m", NOW - 300 * 1000000000LL);
	is("2d", NOW - 172800 * 1000000000LL);
	is("2024-01-02T03:04:05Z", 1704164645000000000LL);
	is("2024-01-02T03:04:05.25Z", 1704164645250000000LL);
	is("2024-01-02T05:04:05+02:00", 1704164645000000000LL);
	is("2024-01-01 22:34:05-04:30", 1704164645000000000LL);
	is("2024-02-29T00:00:00Z", 1709164800000000000LL);
}

static void others_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"yesterday",
		"5x",
		"-5m",
		"2024-01-02",
		"2024-01-02T03:04:05",
		"2024-02-30T00:00:00Z",
		"2024-01-02T03:04:05Z later",
		"2024-01-02T03:04:05+2",
		"2024-01-02T03:04:05+99:00",
		"2024-13-02T03:04:05Z",
		"2024-01-02T25:04:05Z",
		"9999999-01-02T03:04:05Z",
	};
	int64_t found;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (moment__parse(texts[i], NOW, &found))
			fail_msg("%s", texts[i]);
}

static void moments_are_spelled(void **state)
{
	char *text = moment__text(1704164645999999999LL);

	(void)state;
	assert_string_equal(text, "2024-01-02T03:04:05Z");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_are_understood),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(moments_are_spelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
