/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes are wanted.
 *
 *	comm		a pattern, as the shell has them: of the short name, which profiles
 *			show, or of the kernel's, which ps and top show, of at most 15 bytes
 *	cgroup		one and all below it: a folder of a mounted hierarchy, or a path as in
 *			/proc/PID/cgroup, which is one of any hierarchy
 *	container	its ID, or at least 4 hexadecimal digits that it begins with; behind
 *			RUNTIME://, as kubectl has it, too, where it may be a shorter name
 *	uid		a user of /etc/passwd or a number: the effective one
 *	exclude		KIND=TEXT, of those above
 *
 * Of several rules of one kind a process has to meet one, and so of each kind that there
 * is; it is not wanted where it meets one that excludes.  What is not known of it meets
 * nothing.
 */
#ifndef PYBPFPROF_PROCESS_FILTER_H
#define PYBPFPROF_PROCESS_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "processes/identity.h"

struct process_rule;

/* One without rules is all zero. */
struct process_filter {
	struct process_rule *rules;
	size_t count;
};

/* Adds the rule TEXT of KIND, one of those above.  NULL, or what is wrong with it in a line, which
 * the caller frees. */
char *process_filter__add(struct process_filter *filter, const char *kind, const char *text);
void process_filter__free(struct process_filter *filter);

/* Whether all are wanted. */
bool process_filter__is_empty(const struct process_filter *filter);

bool process_filter__wants(const struct process_filter *filter, const struct identity *identity);

/* Whether that can be told of what may have ended before it was read. */
bool process_filter__can_tell(const struct process_filter *filter, const struct identity *identity);

#endif
