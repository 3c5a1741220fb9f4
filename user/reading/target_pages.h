/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the memory of one target in small pieces, each page of it about once. */
#ifndef PYBPFPROF_TARGET_PAGES_H
#define PYBPFPROF_TARGET_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Forgets what was read.  The next reads are of process PID, which may be this one. */
void target_pages__begin(pid_t pid);

/* Reads LENGTH bytes at ADDRESS, as they were when their pages were last read: a page is read again
 * once another one has taken its place.  False: not all can be read.  Call it in an errand
 * (reader.h), unless the process surely answers. */
bool target_pages__read(uint64_t address, void *buffer, size_t length);

#endif
