/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that talks to others over the network, and may do nothing else. */
#ifndef PYBPFPROF_UNPRIVILEGED_H
#define PYBPFPROF_UNPRIVILEGED_H

#include <stdbool.h>

/* Gives up all privileges of this process, for good, which ps shows as NAME from now on.  False
 * after what is wrong was said. */
bool unprivileged__become(const char *name);

#endif
