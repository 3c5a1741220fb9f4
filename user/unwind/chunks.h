/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that user space and BPF share for rows and tables of mappings: maps of CHUNK_SIZE
 * bytes, made when they are needed, and written in place.
 */
#ifndef PYBPFPROF_CHUNKS_H
#define PYBPFPROF_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunks;

/* Adds chunks to the map MAP_FD, an array of maps, up to BUDGET bytes.  Free with chunks__free,
 * NULL too. */
struct chunks *chunks__new(int map_fd, uint64_t budget);
void chunks__free(struct chunks *chunks);

/* Takes room for COUNT things of SIZE bytes, a power of two, one after another; IN_ONE: in one
 * chunk.  0 with *NUMBER, counted in things from the first chunk on; -ENOSPC where the budget is
 * used up, or the -errno of the kernel's refusal. */
int chunks__take(struct chunks *chunks, size_t size, size_t count, bool in_one, uint32_t *number);

/* Thing NUMBER of SIZE bytes, and what follows it in the same chunk; it was taken. */
void *chunks__at(const struct chunks *chunks, size_t size, uint32_t number);

/* Gives back all that was taken.  Nothing may lead to it in BPF any more.  Returns once no sample
 * is under way that had looked up something before. */
void chunks__begin_anew(struct chunks *chunks);

/* Bytes that may be taken in all. */
uint64_t chunks__limit(const struct chunks *chunks);

/* Bytes that were taken. */
uint64_t chunks__used(const struct chunks *chunks);

#endif
