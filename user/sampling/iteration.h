/* SPDX-License-Identifier: BSD-2-Clause */
/* BPF's iterators that give user space nothing. */
#ifndef PYBPFPROF_ITERATION_H
#define PYBPFPROF_ITERATION_H

/* Runs the iterator of LINK to its end.  0 or -errno. */
int iteration__run(int link);

#endif
