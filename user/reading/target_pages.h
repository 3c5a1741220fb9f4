/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the memory of one target in small pieces, each page of it once. */
#ifndef PYBPFPROF_TARGET_PAGES_H
#define PYBPFPROF_TARGET_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target_pages;

/* Free with target_pages__free, NULL too. */
struct target_pages *target_pages__new(void);
void target_pages__free(struct target_pages *pages);

/* Forgets what was read.  The next reads are of process PID, which may be this one. */
void target_pages__begin(struct target_pages *pages, pid_t pid);

/* Reads LENGTH bytes at ADDRESS, as they were when their pages were first read.  False: not all of
 * them can be read.  Call it in an errand (reader.h), unless the process surely
 * answers. */
bool target_pages__read(struct target_pages *pages, uint64_t address, void *buffer, size_t length);

#endif
