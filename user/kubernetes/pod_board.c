// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/xalloc.h"
#include "kubernetes/pod_board.h"

struct shared {
	struct pod_writer writer;
	/* How many texts were begun, and written.  The last one is text[written % 2].  A write uses
	 * the other half.  So the reader's copy is not valid if two more texts were begun. */
	_Atomic uint64_t begun, written;
	_Atomic uint64_t length[2];
	_Atomic bool crowded;
	char text[];
};

struct pod_board {
	size_t size_max;
	struct shared *shared;
};

static size_t size_of(size_t size_max)
{
	return sizeof(struct shared) + 2 * size_max;
}

struct pod_board *pod_board__new(size_t size_max)
{
	void *memory = mmap(NULL, size_of(size_max), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct pod_board *board;

	if (memory == MAP_FAILED)
		return NULL;
	board = xcalloc(1, sizeof(*board));
	board->size_max = size_max;
	board->shared = memory;
	return board;
}

void pod_board__free(struct pod_board *board)
{
	if (!board)
		return;
	munmap(board->shared, size_of(board->size_max));
	free(board);
}

struct pod_writer *pod_board__writer(const struct pod_board *board)
{
	return &board->shared->writer;
}

bool pod_board__write(struct pod_board *board, const char *text, size_t length)
{
	struct shared *shared = board->shared;
	uint64_t serial = shared->written + 1;

	shared->crowded = length > board->size_max;
	if (length > board->size_max)
		return false;
	shared->begun = serial;
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(shared->text + serial % 2 * board->size_max, text, length);
	shared->length[serial % 2] = length;
	shared->written = serial;
	return true;
}

char *pod_board__read(const struct pod_board *board, uint64_t *serial, size_t *length)
{
	const struct shared *shared = board->shared;
	uint64_t last = shared->written, size = shared->length[last % 2];
	char *text;

	/* The writer talks to the network, so its numbers are not trusted. */
	if (last == *serial || size > board->size_max)
		return NULL;
	text = xmalloc(size + 1);
	memcpy(text, shared->text + last % 2 * board->size_max, size);
	text[size] = '\0';
	atomic_thread_fence(memory_order_seq_cst);
	if (shared->begun <= last + 1) {
		*serial = last;
		*length = size;
		return text;
	}
	free(text);
	return NULL;
}

bool pod_board__current(const struct pod_board *board)
{
	return board->shared->writer.current && !board->shared->crowded;
}

void pod_board__end_writer(struct pod_board *board, bool again)
{
	struct pod_writer *writer = pod_board__writer(board);

	writer->bytes = 0;
	writer->current = false;
	writer->restarts += again;
}
