/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that user space and BPF share for rows and tables of mappings: maps of CHUNK_SIZE
 * bytes.  They are made when they are needed, and written in place.
 */
#ifndef PYBPFPROF_CHUNKS_H
#define PYBPFPROF_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunks {
	int map_fd;
	uint64_t limit, used; /* bytes that may be taken in all, and those that were */
	struct chunk *all;
	size_t count, capacity;
};

/* Adds chunks to MAP_FD, an array of maps, up to BUDGET bytes.  Free: chunks__free, NULL too. */
struct chunks *chunks__new(int map_fd, uint64_t budget);
void chunks__free(struct chunks *chunks);

/* Takes room for COUNT adjacent elements of SIZE bytes, a power of two.  IN_ONE: all in one chunk.
 * 0 with the first one's *NUMBER, counted in elements from the first chunk on; -ENOSPC if the
 * budget is used up, or the -errno of the kernel. */
int chunks__take(struct chunks *chunks, size_t size, size_t count, bool in_one, uint32_t *number);

/* Element NUMBER of SIZE bytes, which was taken, and those behind it in the same chunk. */
void *chunks__at(const struct chunks *chunks, size_t size, uint32_t number);

/* Gives back all room.  Nothing in BPF may refer to it any more.  Returns once no running BPF
 * program still uses an earlier look-up. */
void chunks__begin_anew(struct chunks *chunks);

#endif
