// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.h"
#include "recording/wall_clock.h"

#define NS_PER_S 1000000000LL

/* The two clocks are not read at the same moment. */
#define TOLERANCE_NS 10000000LL

void wall_clock__begin(struct wall_clock *clock, int64_t now_ns, int64_t unix_ns)
{
	*clock = (struct wall_clock){ .begin_ns = now_ns, .begin_unix_ns = unix_ns };
}

/* How much of AHEAD_NS is caught up at NOW_NS. */
static int64_t caught_up(const struct wall_clock *clock, int64_t now_ns)
{
	int64_t most = (now_ns - clock->begin_ns) / 2;

	return clock->ahead_ns < most ? clock->ahead_ns : most;
}

int64_t wall_clock__tell(const struct wall_clock *clock, int64_t now_ns)
{
	return clock->begin_unix_ns + now_ns - clock->begin_ns - caught_up(clock, now_ns);
}

int64_t wall_clock__cut(struct wall_clock *clock, int64_t now_ns, int64_t unix_ns)
{
	int64_t told_ns = wall_clock__tell(clock, now_ns), ahead_ns = told_ns - unix_ns;
	int64_t set_ns = clock->ahead_ns - caught_up(clock, now_ns) - ahead_ns;

	wall_clock__begin(clock, now_ns, told_ns);
	if (ahead_ns < -TOLERANCE_NS)
		clock->begin_unix_ns = unix_ns;
	else if (ahead_ns > 0)
		clock->ahead_ns = ahead_ns;
	return set_ns > TOLERANCE_NS || set_ns < -TOLERANCE_NS ? set_ns : 0;
}

void wall_clock__say_set(int64_t by_ns)
{
	if (by_ns > 0)
		log__info("the clock was set forward by %.1f s, or the machine slept: no window "
			  "covers that time",
			  (double)by_ns / NS_PER_S);
	else if (by_ns < 0)
		log__warning(
			"the clock was set back by %.1f s: windows stay in order, ahead of the "
			"clock, and show half their length until it catches up; restart the agent "
			"to end this at once",
			(double)-by_ns / NS_PER_S);
}
