/* SPDX-License-Identifier: BSD-2-Clause */
/* What the checks have found, and how it is shown. */
#ifndef PYBPFPROF_FINDINGS_H
#define PYBPFPROF_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum verdict {
	VERDICT_OK,
	VERDICT_LIMITED, /* it works, but less well than it could */
	VERDICT_MISSING, /* it does not work */
};

struct finding {
	const char *name;
	enum verdict verdict;
	char *found;
	char *costs, *mend; /* NULL where it is OK */
};

struct findings {
	const char *verb;	     /* what works, or does not */
	const char *without_company; /* what it costs that less runs at once than it starts */
	const char *name;	     /* of the check that runs */
	bool everybody;		     /* it is to work on all users' processes */
	bool own_alone;		     /* it works, but not on other users' processes ... */
	bool less_able_alone;	     /* ... nor on those with capabilities that this one lacks */
	struct finding *list;
	size_t count, capacity;
};

/* Adds what is as it must be. */
void findings__add_ok(struct findings *findings, const char *found, ...)
	__attribute__((format(printf, 2, 3)));

/* Adds what is not, what it COSTS, and FOUND; then findings__mend says what mends it. */
void findings__add(struct findings *findings, enum verdict verdict, const char *costs,
		   const char *found, ...) __attribute__((format(printf, 4, 5)));
void findings__mend(struct findings *findings, const char *mend, ...)
	__attribute__((format(printf, 2, 3)));

/* Whether nothing is missing. */
bool findings__work(const struct findings *findings);

void findings__print(const struct findings *findings, FILE *file);
void findings__print_json(const struct findings *findings, FILE *file);

void findings__free(struct findings *findings);

#endif
