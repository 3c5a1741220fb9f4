/* SPDX-License-Identifier: BSD-2-Clause */
/* The PID namespace of this program.  All of user/, and the user, use its numbers. */
#ifndef PYBPFPROF_PID_NAMESPACE_H
#define PYBPFPROF_PID_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether it is the initial one of the machine, so that its numbers are the kernel's own. */
bool pid_namespace__is_first(void);

/* Whether /proc shows the processes of this namespace, with its numbers. */
bool pid_namespace__has_proc(void);

/* Returns the processes here that are PID in a namespace within this one, as words for a message;
 * NULL: none.  The caller frees. */
char *pid_namespace__namesakes(pid_t pid);

#endif
