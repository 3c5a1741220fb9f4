/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes map to be executed, where the kernel lets no function be traced for that. */
#ifndef PYBPFPROF_MAPPINGS_H
#define PYBPFPROF_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A part of a file, as perf's events have it. */
struct file_part {
	uint64_t inode, generation;
	uint64_t offset, bytes;
	uint32_t major, minor; /* of the device */
};

_Static_assert(sizeof(struct file_part) == 40, "no padding: it is the key of a table");

struct mapped_file {
	struct file_part part;
	uint64_t start; /* in memory */
};

struct mappings;

/* What takes those. */
struct mappings_sink {
	void (*map)(void *context, pid_t pid, const struct mapped_file *file);
	/* Whether one that MAP is to be told cannot wait; another may have become of the process
	 * before that, which is not told yet. */
	bool (*urges)(void *context, pid_t pid, const struct mapped_file *file);
	void *context;
};

/* Has SINK told of each, and EPOLL_FD be readable when there are any.  0 with *MAPPINGS for
 * mappings__free, or the -errno of the kernel's refusal. */
int mappings__open(const struct mappings_sink *sink, int epoll_fd, struct mappings **mappings);
void mappings__free(struct mappings *mappings);

/* Readable when there are new ones; -1 where MAPPINGS is NULL. */
int mappings__fd(const struct mappings *mappings);

/* Takes note of what there is by now; and hands that over: returns how much it was, with what else
 * the kernel tells then.  Of NULL there is nothing. */
void mappings__mark(struct mappings *mappings);
size_t mappings__take(struct mappings *mappings);

/* Whether any of those that are there by now cannot wait; each is asked about once.  Of NULL there
 * is nothing. */
bool mappings__urge(struct mappings *mappings);

/* How often there was no room for some, so far. */
uint64_t mappings__lost(const struct mappings *mappings);

#endif
