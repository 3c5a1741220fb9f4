/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory a process has that it does not share with those it was forked from. */
#ifndef PYBPFPROF_OWN_MEMORY_H
#define PYBPFPROF_OWN_MEMORY_H

#include <stdint.h>

/* Of this process: without what is a file's, as programs and libraries are, or shared; 0: it is not
 * told. */
uint64_t own_memory__bytes(void);

#endif
