/* SPDX-License-Identifier: BSD-2-Clause */
/* What works on this machine: tables of probes, walked in order. */
#ifndef PYBPFPROF_CHECK_H
#define PYBPFPROF_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "check/trial.h"
#include "options/options.h"

enum verdict {
	OK,
	LIMITED, /* it works, but less well than it could */
	MISSING, /* it does not work */
};

struct check {
	const struct options *agent; /* those that the agent is to have; NULL: record is checked */
	const struct trial *trial;
	bool own_alone;	      /* it works, but not on other users' processes ... */
	bool less_able_alone; /* ... nor on those with capabilities that this one lacks */
	size_t missing;	      /* how many are */
	json_t *list;	      /* of what was found; NULL: a table is printed */
	/* Of the probe that runs: its name, and what it found, allocated.  NULL: nothing, which is
	 * not shown; for costs and mend, which are not shown where it is OK: as the probe has them.
	 */
	const char *name;
	char *found, *costs, *mend;
	bool again;	/* it has more to try */
	bool offline;	/* the network cannot be tried */
	size_t backend; /* the next to be tried */
};

struct probe {
	const char *name;
	enum verdict (*try)(struct check *check);
	const char *costs, *mend; /* what does not work, and what mends it, unless it is OK */
};

/* Each ends with a probe without a name; the agent's are tried after the machine's. */
extern const struct probe machine_probes[];
extern const struct probe agent_probes[];

/* Two of the machine's: whether this is a container, and how much memory there may be. */
enum verdict surroundings__container(struct check *check);
enum verdict surroundings__memory(struct check *check);

/* How many processes and threads run beside the one that reads others: of AGENT, or, where that is
 * NULL, of record. */
unsigned int agent_probes__company(const struct options *agent);

/* Whether native frames are needed, not only wanted. */
bool check__needs_native(const struct check *check);

/* Has CHECK's probe find this; returns VERDICT. */
enum verdict check__say(struct check *check, enum verdict verdict, const char *found, ...)
	__attribute__((format(printf, 3, 4)));

/* Tries whether record works or, with these options, an AGENT, and prints what was found, as JSON
 * or as a table.  Returns whether nothing is missing.  For an agent it gives up all privileges, for
 * good, before it talks to others. */
bool check__run(const struct options *agent, bool json);

#endif
