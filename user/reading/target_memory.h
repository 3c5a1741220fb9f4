/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a target's memory: never stops it, never writes to it, and does not wait for ever for
 * what is not there (deputy.h). */
#ifndef PYBPFPROF_TARGET_MEMORY_H
#define PYBPFPROF_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads exactly LENGTH bytes at ADDRESS of process PID (one's own, too).
 * 0; -EFAULT where not all is mapped; -ESRCH where the process is gone; -EPERM; -ETIMEDOUT or
 * -ENOMEM as deputy__run() has them. */
int target_memory__read(pid_t pid, uint64_t address, void *buffer, size_t length);

/* The same for a pointer. */
int target_memory__read_pointer(pid_t pid, uint64_t address, uint64_t *pointer);

/* Reads what lies at ADDRESS, so that it is in memory for a while if it was paged out: from
 * an interrupt it cannot be waited for. */
void target_memory__page_in(pid_t pid, uint64_t address);

/* Reads SIZE bytes, 4,096 at most, at each of COUNT addresses, one behind the other into BUFFER,
 * in few calls. READABLE tells for each whether it could be read. */
void target_memory__read_each(pid_t pid, const uint64_t *addresses, size_t count, void *buffer,
			      size_t size, bool *readable);

struct memory_part {
	uint64_t address;
	void *buffer;
	size_t size; /* 1 to 4,096 */
	bool readable;
};

/* Reads COUNT parts, with one read for all that are on a page, and sets READABLE of each. */
void target_memory__read_parts(pid_t pid, struct memory_part *parts, size_t count);

#endif
