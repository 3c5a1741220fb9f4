/* SPDX-License-Identifier: BSD-2-Clause */
/* What mends that something of this machine runs short, or is refused. */
#ifndef PYBPFPROF_MENDS_H
#define PYBPFPROF_MENDS_H

/* That a process or a thread cannot be started, for ERROR, -errno. */
const char *mends__start(int error);

#endif
