/* SPDX-License-Identifier: BSD-2-Clause */
/* Executable mappings of processes, where the kernel does not let BPF trace them. */
#ifndef PYBPFPROF_MAPPINGS_H
#define PYBPFPROF_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A part of a file. */
struct file_part {
	uint64_t bytes, offset;
	uint32_t major, minor; /* of the device */
	uint64_t inode, generation;
};

_Static_assert(sizeof(struct file_part) == 40, "no padding: it is the key of a table");

/* In the order of perf's records. */
struct mapped_file {
	uint64_t start; /* in memory */
	struct file_part part;
};

struct mappings;

/* Receives the mappings. */
struct mappings_sink {
	void (*map)(void *context, pid_t pid, const struct mapped_file *file);
	/* Whether a mapping that MAP will receive cannot wait.  An exec or an exit of the process
	 * may be on its way that the sink does not know yet. */
	bool (*urges)(void *context, pid_t pid, const struct mapped_file *file);
	void *context;
};

/* Opens the rings; EPOLL_FD becomes readable when there are mappings.  0 with *MAPPINGS for
 * mappings__free, or the -errno of the kernel's refusal.  The functions below take NULL, too: then
 * there are no mappings. */
int mappings__open(const struct mappings_sink *sink, int epoll_fd, struct mappings **mappings);
void mappings__free(struct mappings *mappings);

/* Readable when there are new mappings; -1 where MAPPINGS is NULL. */
int mappings__fd(const struct mappings *mappings);

/* Marks what is in the rings now; and hands over what is before the mark.  Returns the number of
 * records that were taken, of all kinds. */
void mappings__mark(struct mappings *mappings);
size_t mappings__take(struct mappings *mappings);

/* Whether a mapping in the rings cannot wait; the sink is asked about each once. */
bool mappings__urge(struct mappings *mappings);

/* How many records were lost so far because a ring was full. */
uint64_t mappings__lost(const struct mappings *mappings);

#endif
