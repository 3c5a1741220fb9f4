/* SPDX-License-Identifier: BSD-2-Clause */
/* Typing errors. */
#ifndef PYBPFPROF_NEAR_H
#define PYBPFPROF_NEAR_H

#include <stdbool.h>

/* With more errors it is another word. */
#define NEAR_ERRORS_MAX 2

/* Whether WORD, which is longer than ERRORS, differs from OTHER by at most ERRORS letters: changed,
 * added, dropped or swapped. */
bool near__is(const char *word, const char *other, unsigned int errors);

/* The first of the names that were tried that is nearest to WORD; BEST is NULL if none is near. */
struct near {
	const char *word, *best;
	unsigned int errors; /* of BEST; without one, more than any that is near */
};

#define NEAR(what)                                            \
	{                                                     \
		.word = (what), .errors = NEAR_ERRORS_MAX + 1 \
	}

/* Tries OTHER, which must live as long as NEAR. */
void near__try(struct near *near, const char *other);

/* Adds to the error message WRONG that BEST may be meant.  NULL or "": adds nothing.  The caller
 * frees the result in place of WRONG. */
char *near__suggest(char *wrong, const char *best);

#endif
