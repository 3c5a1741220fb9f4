/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine's CPUs. */
#ifndef PYBPFPROF_CPUS_H
#define PYBPFPROF_CPUS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CPUS_ONLINE_PATH "/sys/devices/system/cpu/online"

/* The numbers of the CPUs that are online, ascending; the caller frees *NUMBERS.  How many, never
 * none; -errno where that cannot be read now. */
ssize_t cpus__online(uint32_t **numbers);

/* One more than the highest number that is online: the size of an array by CPU number; or -errno.
 */
ssize_t cpus__array_size(void);

/* Runs on each CPU that is online for a moment, so that what ran there was switched out once; on
 * how many it could. */
size_t cpus__visit(void);

/* Parses the kernel's list form, "0-3,8,10-11", which may be of none; the caller frees *NUMBERS. */
size_t cpus__parse_list(const char *list, uint32_t **numbers);

#endif
