/* SPDX-License-Identifier: BSD-2-Clause */
/* What the user can do if a resource is short or a call is refused. */
#ifndef PYBPFPROF_MENDS_H
#define PYBPFPROF_MENDS_H

/* For a process or thread that cannot be started because of ERROR, -errno. */
const char *mends__start(int error);

#endif
