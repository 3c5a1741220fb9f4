/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_CPUS_H
#define PYBPFPROF_CPUS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CPUS_ONLINE_PATH "/sys/devices/system/cpu/online"

/* The numbers of the online CPUs, ascending; the caller frees *NUMBERS.  Returns how many, at least
 * one; -errno if the list cannot be read now. */
ssize_t cpus__online(uint32_t **numbers);

/* One more than the highest number of an online CPU, as the size of an array; or -errno. */
ssize_t cpus__array_size(void);

/* Runs on each online CPU for a moment, which switches out the thread that ran there.  Returns the
 * number of CPUs on which it could. */
size_t cpus__visit(void);

/* Parses the kernel's format "0-3,8,10-11", which may be empty; the caller frees *NUMBERS. */
size_t cpus__parse_list(const char *list, uint32_t **numbers);

#endif
