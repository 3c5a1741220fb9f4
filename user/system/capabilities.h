/* SPDX-License-Identifier: BSD-2-Clause */
/* The capabilities that profiling needs, and those that this process has. */
#ifndef PYBPFPROF_CAPABILITIES_H
#define PYBPFPROF_CAPABILITIES_H

#include <stdbool.h>
#include <stdint.h>

struct capability {
	int number, instead; /* INSTEAD does as well; otherwise it is the same */
	const char *name, *what_for;
	bool for_other_users; /* only for profiling other users' processes; see privileges__needs()
			       */
	bool to_the_end;      /* also after sampling has begun */
};

/* All that are needed, on every kernel.  The last one has no name. */
extern const struct capability capabilities__needed[];

/* A set of capabilities, one bit per number. */
uint64_t capabilities__effective(void);
bool capabilities__have(uint64_t set, int number);

/* The number by which SET has CAPABILITY: its own or INSTEAD; -1: none. */
int capability__find(const struct capability *capability, uint64_t set);

/* Makes only the capabilities in SET effective.  The others are KEPT for a later call, or dropped
 * for good.  0 or -errno. */
int capabilities__limit(uint64_t set, bool kept);

/* For a child before exec: the program that it runs does not inherit the profiler's
 * capabilities. */
void capabilities__disown(void);

#endif
