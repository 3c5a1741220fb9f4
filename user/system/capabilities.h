/* SPDX-License-Identifier: BSD-2-Clause */
/* The capabilities that profiling takes, and those that this process holds. */
#ifndef PYBPFPROF_CAPABILITIES_H
#define PYBPFPROF_CAPABILITIES_H

#include <stdbool.h>
#include <stdint.h>

struct capability {
	int number, instead; /* what will do in its place; else the same */
	const char *name, *what_for;
	bool for_other_users; /* only to profile their processes; see privileges__needs() */
	bool to_the_end;      /* also once sampling has begun */
};

/* Those that are needed on every kernel, up to one without a name. */
extern const struct capability capabilities__needed[];

/* A set of capabilities: a bit for each number. */
uint64_t capabilities__effective(void);
bool capabilities__have(uint64_t set, int number);

/* The number by which SET has CAPABILITY: its own, or the one in its place; -1 where it has not. */
int capability__find(const struct capability *capability, uint64_t set);

/* Lets only those in SET act; the others are kept for another call, or, unless they are to be KEPT,
 * given up for good.  0 or -errno. */
int capabilities__limit(uint64_t set, bool kept);

/* In a child: those that the profiler was given are not for the program that the child runs. */
void capabilities__disown(void);

#endif
