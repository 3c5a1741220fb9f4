// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/sink.h"
#include "base/log.h"
#include "base/xalloc.h"

/* A sink that takes no window from number FROM to TO - 1. */
struct picky {
	unsigned int seen, from, to;
	bool closed, leaving; /* LEAVING: not all that it took arrives */
};

static char *take(void *context, const struct labelled_window *window)
{
	struct picky *picky = context;
	unsigned int number = picky->seen++;

	assert_int_equal(window->start_unix_ns, number);
	return number >= picky->from && number < picky->to ? xstrdup("no room") : NULL;
}

static bool close_picky(void *context)
{
	struct picky *picky = context;

	picky->closed = true;
	return !picky->leaving;
}

static const struct sink_operations picky_operations = {
	.name = "picky",
	.take = take,
	.close = close_picky,
};

static void give(struct sinks *sinks, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		sinks__take(sinks, &(struct labelled_window){ .start_unix_ns = i });
}

static void each_sink_gets_each_window(void **state)
{
	struct picky first = { .from = 1, .to = 3 }, second = { 0 };
	struct sinks sinks = { 0 };

	(void)state;
	sinks__add(&sinks, &picky_operations, &first);
	sinks__add(&sinks, &picky_operations, &second);
	give(&sinks, 2);
	assert_true(sinks.sinks[0].failing);
	assert_false(sinks.sinks[1].failing);
	assert_int_equal(sinks.sinks[0].lost, 1);
	assert_false(sinks__close(&sinks));
	assert_int_equal(first.seen, 2);
	assert_int_equal(second.seen, 2);
	assert_true(first.closed && second.closed);
}

static void lost_windows_stay_lost(void **state)
{
	struct picky picky = { .from = 1, .to = 3 };
	struct sinks sinks = { 0 };

	(void)state;
	sinks__add(&sinks, &picky_operations, &picky);
	give(&sinks, 5);
	assert_false(sinks.sinks[0].failing);
	assert_int_equal(sinks.sinks[0].taken, 3);
	assert_int_equal(sinks.sinks[0].lost, 2);
	assert_false(sinks__close(&sinks));
}

static void all_windows_are_taken(void **state)
{
	struct picky picky = { 0 };
	struct sinks sinks = { 0 };

	(void)state;
	assert_true(sinks__close(&sinks));
	sinks__add(&sinks, &picky_operations, &picky);
	give(&sinks, 3);
	assert_true(sinks__close(&sinks));
	assert_int_equal(sinks.count, 0);
}

static void taken_windows_may_still_be_lost(void **state)
{
	struct picky first = { .leaving = true }, second = { 0 };
	struct sinks sinks = { 0 };

	(void)state;
	sinks__add(&sinks, &picky_operations, &first);
	sinks__add(&sinks, &picky_operations, &second);
	give(&sinks, 3);
	assert_false(sinks__close(&sinks));
	assert_true(second.closed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sink_gets_each_window),
		cmocka_unit_test(lost_windows_stay_lost),
		cmocka_unit_test(all_windows_are_taken),
		cmocka_unit_test(taken_windows_may_still_be_lost),
	};

	log__set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
