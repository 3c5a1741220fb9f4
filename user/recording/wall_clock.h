/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The times of windows by the wall clock, which may be set at any moment.  Windows stay in order,
 * and none begins before the end of the last one.
 *
 * If the clock was set forward, or the machine slept, the next window begins at the new time, and
 * no window covers the time between.  If it was set back, windows go on ahead of the clock, and
 * show half their length until it has caught up.
 */
#ifndef PYBPFPROF_WALL_CLOCK_H
#define PYBPFPROF_WALL_CLOCK_H

#include <stdint.h>

struct wall_clock {
	int64_t begin_ns, begin_unix_ns; /* of the window: by now_ns(), and since 1970 */
	int64_t ahead_ns;		 /* of the wall clock at that time */
};

/* Begins the first window at NOW_NS, when the wall clock is UNIX_NS. */
void wall_clock__begin(struct wall_clock *clock, int64_t now_ns, int64_t unix_ns);

/* The time since 1970 that windows show for NOW_NS. */
int64_t wall_clock__tell(const struct wall_clock *clock, int64_t now_ns);

/* Ends the window at NOW_NS, when the wall clock is UNIX_NS, and begins the next one.  Returns by
 * how much the clock was set meanwhile; negative: back; 0: it was not. */
int64_t wall_clock__cut(struct wall_clock *clock, int64_t now_ns, int64_t unix_ns);

/* Logs the effect on windows of a clock that was set BY_NS, the result of wall_clock__cut. */
void wall_clock__say_set(int64_t by_ns);

#endif
