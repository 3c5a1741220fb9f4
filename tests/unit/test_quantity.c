// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "base/quantity.h"

#define NOW 1700000000000000000LL

static void is(const char *text, int64_t wanted)
{
	int64_t found;

	assert_true(quantity__moment(text, NOW, &found));
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

/* In the local zone, two hours east of UTC, NOW is 2023-11-15 00:13:20. */
static void times_without_a_zone_are_local(void **state)
{
	(void)state;
	setenv("TZ", "TST-2", 1);
	tzset();
	is("10min", NOW - 600 * 1000000000LL);
	is("1w", NOW - 604800 * 1000000000LL);
	is("00:13", NOW - 20 * 1000000000LL);
	is("00:14", NOW + 40 * 1000000000LL - 86400 * 1000000000LL);
	is("00:13:20", NOW);
	is("2024-01-02", 1704146400000000000LL);
	is("2024-01-02 03:04", 1704157440000000000LL);
	is("2024-01-02T03:04:05", 1704157445000000000LL);
	is("2024-01-02T03:04Z", 1704164640000000000LL);
	unsetenv("TZ");
	tzset();
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"yesterday",
		"24:00",
		"01:60",
		"01:20 ",
		"01:20Z",
		"2024-02-30",
		"2024-01-02 ",
		"2024-01-02 03",
		"5x",
		"-5m",
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
		if (quantity__moment(texts[i], NOW, &found))
			fail_msg("%s", texts[i]);
}

static void moments_are_formatted(void **state)
{
	char *text = quantity__moment_text(1704164645999999999LL);

	(void)state;
	assert_string_equal(text, "2024-01-02T03:04:05Z");
	free(text);
}

static void durations(void **state)
{
	double seconds;

	(void)state;
	assert_true(quantity__duration("30", &seconds) && seconds == 30);
	assert_true(quantity__duration("0.25s", &seconds) && seconds == 0.25);
	assert_true(quantity__duration("2h", &seconds) && seconds == 7200);
	assert_true(quantity__duration("1d", &seconds) && seconds == 86400);
	assert_false(quantity__duration("", &seconds));
	assert_false(quantity__duration("0", &seconds));
	assert_false(quantity__duration("-1", &seconds));
	assert_false(quantity__duration("nan", &seconds));
	assert_false(quantity__duration("1e300", &seconds));
	assert_false(quantity__duration("1 m", &seconds));
}

static void sizes(void **state)
{
	uint64_t bytes;

	(void)state;
	assert_true(quantity__size("500M", &bytes) && bytes == 500ULL << 20);
	assert_true(quantity__size("1.5G", &bytes) && bytes == 1536ULL << 20);
	assert_true(quantity__size("1048576", &bytes) && bytes == 1 << 20);
	assert_false(quantity__size("1048575", &bytes));
	assert_false(quantity__size("65T", &bytes));
	assert_false(quantity__size("1e300", &bytes));
	assert_false(quantity__size("5MB", &bytes));
	assert_false(quantity__size("5X", &bytes));
	assert_false(quantity__size("", &bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_are_understood),
		cmocka_unit_test(times_without_a_zone_are_local),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(moments_are_formatted),
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
