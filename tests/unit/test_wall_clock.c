// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recording/wall_clock.h"

#define SECOND 1000000000LL
#define EPOCH  (1700000000 * SECOND)

/* The two clocks of a machine, and the windows of a run. */
struct run {
	struct wall_clock clock;
	int64_t now, unix_ns;
	int64_t end; /* of the last window */
};

static struct run begin(void)
{
	struct run run = { .now = 77 * SECOND, .unix_ns = EPOCH, .end = EPOCH };

	wall_clock__begin(&run.clock, run.now, run.unix_ns);
	return run;
}

static void set_clock(struct run *run, int64_t by)
{
	run->unix_ns += by;
}

/* Passes a window of SECONDS, and checks that its times are in order.  Returns by how much the
 * clock was set. */
static int64_t pass(struct run *run, int seconds)
{
	int64_t told = run->clock.begin_unix_ns, next;

	assert_true(told >= run->end);
	for (int i = 0; i < seconds; i++) {
		run->now += SECOND;
		run->unix_ns += SECOND;
		next = wall_clock__tell(&run->clock, run->now);
		assert_in_range(next - told, SECOND / 2, SECOND);
		told = next;
	}
	run->end = told;
	return wall_clock__cut(&run->clock, run->now, run->unix_ns);
}

static void windows_follow_a_clock_that_is_not_set(void **state)
{
	struct run run = begin();

	(void)state;
	for (int i = 1; i < 100; i++) {
		/* Some time passes between the readings of the two clocks. */
		set_clock(&run, i % 3 * 100 - 100);
		assert_true(pass(&run, 10) == 0);
		assert_in_range(run.end - EPOCH, i * 10 * SECOND - 1000, i * 10 * SECOND + 1000);
	}
}

static void a_clock_set_forward_leaves_a_gap(void **state)
{
	struct run run = begin();

	(void)state;
	pass(&run, 10);
	set_clock(&run, 3600 * SECOND);
	assert_true(pass(&run, 10) == 3600 * SECOND);
	assert_true(run.end == EPOCH + 20 * SECOND);
	assert_true(pass(&run, 10) == 0);
	assert_true(run.end == EPOCH + 3630 * SECOND);
	assert_true(run.clock.ahead_ns == 0);
}

static void windows_run_ahead_of_a_clock_set_back(void **state)
{
	struct run run = begin();
	int windows = 1;

	(void)state;
	pass(&run, 10);
	set_clock(&run, -3600 * SECOND);
	assert_true(pass(&run, 10) == -3600 * SECOND);
	assert_true(run.clock.ahead_ns == 3600 * SECOND);
	while (run.clock.ahead_ns) {
		assert_true(pass(&run, 10) == 0);
		windows++;
	}
	assert_in_range(windows, 720, 722);
	assert_true(run.end == run.unix_ns);
}

/* The clock is set again before it has caught up, and twice in one window. */
static void the_clock_may_be_set_again(void **state)
{
	struct run run = begin();

	(void)state;
	set_clock(&run, -100 * SECOND);
	assert_true(pass(&run, 10) == -100 * SECOND);
	set_clock(&run, -100 * SECOND);
	assert_true(pass(&run, 10) == -100 * SECOND);
	assert_true(run.clock.ahead_ns == 195 * SECOND);
	set_clock(&run, 300 * SECOND);
	assert_true(pass(&run, 10) == 300 * SECOND);
	assert_true(run.clock.ahead_ns == 0);
	assert_true(run.clock.begin_unix_ns == run.unix_ns);
	set_clock(&run, 50 * SECOND);
	set_clock(&run, -50 * SECOND);
	assert_true(pass(&run, 10) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_follow_a_clock_that_is_not_set),
		cmocka_unit_test(a_clock_set_forward_leaves_a_gap),
		cmocka_unit_test(windows_run_ahead_of_a_clock_set_back),
		cmocka_unit_test(the_clock_may_be_set_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
