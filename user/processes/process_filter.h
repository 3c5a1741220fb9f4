/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filters processes by rules:
 *
 *	comm		a shell pattern for the short name, which profiles show, or for the
 *	kernel's name of at most 15 bytes, which ps and top show
 *	cgroup		a cgroup and all below it: a directory of a mounted hierarchy, or a
 *	path as in /proc/PID/cgroup, of any hierarchy
 *	container	its ID, or the first 4 or more hexadecimal digits.  RUNTIME:// may
 *	come before it, as kubectl writes it, and then a shorter full name
 *	uid		a user of /etc/passwd or a number: the effective one
 *	exclude		KIND=TEXT, of those above
 *
 * A process must match one rule of each kind that has rules, and no rule that excludes.  Unknown
 * properties match nothing.
 */
#ifndef PYBPFPROF_PROCESS_FILTER_H
#define PYBPFPROF_PROCESS_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "processes/identity.h"

struct process_rule;

/* All zero: no rules. */
struct process_filter {
	struct process_rule *rules;
	size_t count;
};

/* Adds a rule of KIND with TEXT.  Returns NULL, or an error message that the caller frees. */
char *process_filter__add(struct process_filter *filter, const char *kind, const char *text);
void process_filter__free(struct process_filter *filter);

/* Whether there are no rules, so that every process is wanted. */
bool process_filter__is_empty(const struct process_filter *filter);

bool process_filter__wants(const struct process_filter *filter, const struct identity *identity);

/* Whether process_filter__wants can decide for a process that may have ended before it was read. */
bool process_filter__can_tell(const struct process_filter *filter, const struct identity *identity);

#endif
