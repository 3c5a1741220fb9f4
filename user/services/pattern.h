/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A regular expression of the configuration.  It is matched against text that any process can
 * choose, so a match that takes too long is given up.  The syntax is PCRE2's, which contains RE2's.
 */
#ifndef PYBPFPROF_PATTERN_H
#define PYBPFPROF_PATTERN_H

#include <stdbool.h>

struct pattern;

/* Returns NULL if REGEX is not valid; the caller frees *WRONG then. */
struct pattern *pattern__new(const char *regex, char **wrong);
void pattern__free(struct pattern *pattern);

/* Whether PATTERN matches the whole of TEXT, which is UTF-8.  A match that is given up counts as no
 * match; the first one of each pattern is logged. */
bool pattern__matches(struct pattern *pattern, const char *text);

/* TEMPLATE with each $1, ${1}, $name and ${name} replaced by the text of that group, and $$ by $.
 * PATTERN must have matched TEXT just before.  The caller frees the result. */
char *pattern__expand(const struct pattern *pattern, const char *text, const char *template);

#endif
