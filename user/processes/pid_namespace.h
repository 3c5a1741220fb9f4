/* SPDX-License-Identifier: BSD-2-Clause */
/* The PID namespace that this program is in, whose numbers the user and all of user/ go by. */
#ifndef PYBPFPROF_PID_NAMESPACE_H
#define PYBPFPROF_PID_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether it is the machine's first one, so that its numbers are the kernel's own. */
bool pid_namespace__is_first(void);

/* Whether /proc shows this namespace's processes by its numbers. */
bool pid_namespace__has_proc(void);

/* The processes here that a namespace within this one knows as PID, in words; NULL: none.  The
 * caller frees. */
char *pid_namespace__namesakes(pid_t pid);

#endif
