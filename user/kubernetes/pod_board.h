/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one process has written last and another reads, without either ever waiting: memory that
 * both have, with room for two texts, of which the writer takes turns.
 */
#ifndef PYBPFPROF_POD_BOARD_H
#define PYBPFPROF_POD_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pod_board;

/* Before the fork.  NULL with errno where there is no memory. */
struct pod_board *pod_board__new(size_t size_max);
void pod_board__free(struct pod_board *board);

/* False where TEXT has no room: what stood there stays, and is not current until one has. */
bool pod_board__write(struct pod_board *board, const char *text, size_t length);

/* What was written last, for the caller to free, where that is not what *SERIAL, 0 at first, says;
 * else NULL, also where it is just being replaced: it is there the next time. */
char *pod_board__read(const struct pod_board *board, uint64_t *serial, size_t *length);

/* Whether the writer knows all that there is; it is current where that stands there, too. */
void pod_board__set_current(struct pod_board *board, bool current);
bool pod_board__current(const struct pod_board *board);

/* Memory that the writer has of its own. */
void pod_board__set_bytes(struct pod_board *board, uint64_t bytes);
uint64_t pod_board__bytes(const struct pod_board *board);

/* CPU time that it and those before it have used. */
void pod_board__set_cpu_ns(struct pod_board *board, uint64_t cpu_ns);
uint64_t pod_board__cpu_ns(const struct pod_board *board);

/* The writer has ended; AGAIN: another one takes its place. */
void pod_board__end_writer(struct pod_board *board, bool again);
/* How many took the place of one. */
uint64_t pod_board__restarts(const struct pod_board *board);

#endif
