/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A text that one process writes and another reads, with the writer's counts.  They share memory
 * with room for two texts, which the writer uses in turn, so that neither ever waits.
 */
#ifndef PYBPFPROF_POD_BOARD_H
#define PYBPFPROF_POD_BOARD_H

#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of a text.  Pages that it does not need take no memory. */
#define BOARD_BYTES (16U << 20)

struct pod_board {
	/* Of the writer. */
	_Atomic bool current;	   /* it knows all pods */
	_Atomic uint64_t bytes;	   /* its private memory */
	_Atomic uint64_t cpu_ns;   /* CPU time that it and the writers before it used */
	_Atomic uint64_t restarts; /* writers that were replaced */

	/* How many texts were begun, and written.  The last one is text[written % 2].  A write uses
	 * the other half.  So the reader's copy is not valid if two more texts were begun. */
	_Atomic uint64_t begun, written;
	_Atomic uint64_t length[2];
	_Atomic bool crowded; /* the last text did not fit */
	char text[2][BOARD_BYTES];
};

/* Makes a board, before the fork.  NULL with errno if there is no memory.  Free with
 * pod_board__free, NULL too. */
struct pod_board *pod_board__new(void);
void pod_board__free(struct pod_board *board);

/* False if TEXT is too long.  Then the text before stays, and the board is crowded until
 * another write succeeds. */
bool pod_board__write(struct pod_board *board, const char *text, size_t length);

/* The last text, with a NUL after it, for the caller to free.  NULL if *SERIAL, 0 at first, says
 * that it was read already, or if the writer is replacing it: then the next read has the new one.
 */
char *pod_board__read(const struct pod_board *board, uint64_t *serial, size_t *length);

#endif
