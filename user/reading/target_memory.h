/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the memory of a target.  It never stops the target, never writes to it, and does not wait
 * for ever for missing pages (reader.h). */
#ifndef PYBPFPROF_TARGET_MEMORY_H
#define PYBPFPROF_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads exactly LENGTH bytes at ADDRESS of process PID, which may be this one.  0; -EFAULT if not
 * all is mapped; -ESRCH if the process has ended; -EPERM; -ETIMEDOUT or -ENOMEM as reader__run().
 */
int target_memory__read(pid_t pid, uint64_t address, void *buffer, size_t length);

/* The same for a pointer. */
int target_memory__read_pointer(pid_t pid, uint64_t address, uint64_t *pointer);

/* Reads what is at ADDRESS, so that it is in memory for a while.  BPF cannot wait for a page that
 * was paged out. */
void target_memory__page_in(pid_t pid, uint64_t address);

/* Reads SIZE bytes, at most 4,096, at each of COUNT addresses into BUFFER, one after another, with
 * few system calls.  READABLE[i]: whether address i could be read. */
void target_memory__read_each(pid_t pid, const uint64_t *addresses, size_t count, void *buffer,
			      size_t size, bool *readable);

struct memory_part {
	uint64_t address;
	void *buffer;
	size_t size; /* 1 to 4,096 */
	bool readable;
};

/* Reads COUNT parts, with one read for all parts of a page, and sets READABLE of each. */
void target_memory__read_parts(pid_t pid, struct memory_part *parts, size_t count);

#endif
