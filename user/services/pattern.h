/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A regular expression of the configuration, for text that others chose.  It is PCRE2's, which has
 * what RE2's has, and more; a search that takes too long is given up.
 */
#ifndef PYBPFPROF_PATTERN_H
#define PYBPFPROF_PATTERN_H

#include <stdbool.h>

struct pattern;

/* NULL with *WRONG, for the caller to free, where REGEX is none. */
struct pattern *pattern__new(const char *regex, char **wrong);
void pattern__free(struct pattern *pattern);

/* Whether PATTERN is the whole of TEXT, which is UTF-8.  What is given up does not match, and is
 * said the first time. */
bool pattern__matches(struct pattern *pattern, const char *text);

/* TEMPLATE with each $1, ${1}, $name and ${name} replaced by what that group has in TEXT, which
 * PATTERN has just matched, and $$ by $; for the caller to free. */
char *pattern__expand(const struct pattern *pattern, const char *text, const char *template);

#endif
