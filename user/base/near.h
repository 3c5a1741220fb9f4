/* SPDX-License-Identifier: BSD-2-Clause */
/* Typing errors. */
#ifndef PYBPFPROF_NEAR_H
#define PYBPFPROF_NEAR_H

#include <stdbool.h>

/* A word with more is another word. */
#define NEAR_ERRORS_MAX 2

/* Whether WORD, which is longer than ERRORS, differs from OTHER by at most ERRORS letters: changed,
 * added, dropped or swapped. */
bool near__is(const char *word, const char *other, unsigned int errors);

#endif
