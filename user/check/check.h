/* SPDX-License-Identifier: BSD-2-Clause */
/* A check of this machine, and the probes that it consists of. */
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
	const struct options *agent; /* the agent's options; NULL: record is checked */
	const struct trial *trial;
	unsigned int company; /* agent_probes__company() of AGENT */
	bool own_alone;	      /* other users' processes cannot be profiled ... */
	bool less_able_alone; /* ... nor processes with capabilities that this one lacks */
	size_t missing;	      /* probes that found something MISSING */
	json_t *list;	      /* the findings; NULL: they are printed as a table */

	/* For the probe that runs.  What it finds is allocated; without FOUND nothing is shown. */
	const char *name;
	char *found;
	char *costs, *mend; /* these replace the probe's own texts */
	bool again;	    /* the probe has more to try */

	bool offline;	/* the network cannot be tried */
	size_t backend; /* the next one to try */
};

struct probe {
	const char *name;
	enum verdict (*try)(struct check *check);
	const char *costs, *mend; /* the effect and the fix; not shown with OK */
};

/* A probe without a name ends each table.  Those of the agent come last. */
extern const struct probe machine_probes[];
extern const struct probe agent_probes[];

/* Two of the machine's probes: whether this is a container, and the limits of memory. */
enum verdict surroundings__container(struct check *check);
enum verdict surroundings__memory(struct check *check);

/* The number of processes and threads that run beside the thread that reads other processes: those
 * of AGENT, or of record if AGENT is NULL. */
unsigned int agent_probes__company(const struct options *agent);

/* Whether native frames are required.  Otherwise they are optional. */
bool check__needs_native(const struct check *check);

/* Stores a finding of CHECK's probe.  Returns VERDICT. */
enum verdict check__say(struct check *check, enum verdict verdict, const char *found, ...)
	__attribute__((format(printf, 3, 4)));

#endif
