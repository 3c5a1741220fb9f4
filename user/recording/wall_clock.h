/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When windows are by the wall clock, which may be set at any moment: they are as long as they are,
 * in order, and none begins before the last one's end.
 *
 * Where the clock was set forward, or the machine slept, the next window begins by the new time,
 * and what was leapt over is in none.  Where it was set back, windows go on ahead of it, and are
 * told half of their length, until it has caught up.
 */
#ifndef PYBPFPROF_WALL_CLOCK_H
#define PYBPFPROF_WALL_CLOCK_H

#include <stdint.h>

struct wall_clock {
	int64_t begin_ns, begin_unix_ns; /* of the window, since some moment and since 1970 */
	int64_t ahead_ns;		 /* of the wall clock, as it was then */
};

/* The moment NOW_NS is UNIX_NS. */
void wall_clock__begin(struct wall_clock *clock, int64_t now_ns, int64_t unix_ns);

/* What the moment NOW_NS of the window is told as. */
int64_t wall_clock__tell(const struct wall_clock *clock, int64_t now_ns);

/* Ends the window at NOW_NS, when it is UNIX_NS, and begins the next one.  Returns by how much the
 * clock was set meanwhile; negative: back; 0: it was not. */
int64_t wall_clock__cut(struct wall_clock *clock, int64_t now_ns, int64_t unix_ns);

/* Says what it means for windows that the clock was set BY_NS, as wall_clock__cut returns it. */
void wall_clock__say_set(int64_t by_ns);

#endif
