// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/xalloc.h"
#include "kubernetes/pod_board.h"

/* What both processes have. */
struct shared {
	/* How many texts were begun, and written; the last one is in text[written % 2].  While one
	 * is written, the reader copies the other; if that is replaced meanwhile, two more were
	 * begun. */
	uint64_t begun, written;
	uint64_t length[2];
	uint64_t restarts, bytes, cpu_ns;
	bool current, crowded;
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
	munmap(board->shared, size_of(board->size_max));
	free(board);
}

bool pod_board__write(struct pod_board *board, const char *text, size_t length)
{
	struct shared *shared = board->shared;
	uint64_t serial = shared->written + 1;

	__atomic_store_n(&shared->crowded, length > board->size_max, __ATOMIC_SEQ_CST);
	if (length > board->size_max)
		return false;
	__atomic_store_n(&shared->begun, serial, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(shared->text + serial % 2 * board->size_max, text, length);
	shared->length[serial % 2] = length;
	__atomic_store_n(&shared->written, serial, __ATOMIC_SEQ_CST);
	return true;
}

char *pod_board__read(const struct pod_board *board, uint64_t *serial, size_t *length)
{
	const struct shared *shared = board->shared;
	uint64_t last = __atomic_load_n(&shared->written, __ATOMIC_SEQ_CST);
	uint64_t size = __atomic_load_n(&shared->length[last % 2], __ATOMIC_SEQ_CST);
	char *text;

	/* Of a process that talks to strangers nothing is taken for granted. */
	if (last == *serial || size > board->size_max)
		return NULL;
	text = xmalloc(size + 1);
	memcpy(text, shared->text + last % 2 * board->size_max, size);
	text[size] = '\0';
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&shared->begun, __ATOMIC_SEQ_CST) <= last + 1) {
		*serial = last;
		*length = size;
		return text;
	}
	free(text);
	return NULL;
}

void pod_board__set_current(struct pod_board *board, bool current)
{
	__atomic_store_n(&board->shared->current, current, __ATOMIC_SEQ_CST);
}

bool pod_board__current(const struct pod_board *board)
{
	return __atomic_load_n(&board->shared->current, __ATOMIC_SEQ_CST) &&
	       !__atomic_load_n(&board->shared->crowded, __ATOMIC_SEQ_CST);
}

void pod_board__set_bytes(struct pod_board *board, uint64_t bytes)
{
	__atomic_store_n(&board->shared->bytes, bytes, __ATOMIC_SEQ_CST);
}

uint64_t pod_board__bytes(const struct pod_board *board)
{
	return __atomic_load_n(&board->shared->bytes, __ATOMIC_SEQ_CST);
}

void pod_board__set_cpu_ns(struct pod_board *board, uint64_t cpu_ns)
{
	__atomic_store_n(&board->shared->cpu_ns, cpu_ns, __ATOMIC_SEQ_CST);
}

uint64_t pod_board__cpu_ns(const struct pod_board *board)
{
	return __atomic_load_n(&board->shared->cpu_ns, __ATOMIC_SEQ_CST);
}

void pod_board__end_writer(struct pod_board *board, bool again)
{
	pod_board__set_bytes(board, 0);
	pod_board__set_current(board, false);
	__atomic_fetch_add(&board->shared->restarts, again, __ATOMIC_SEQ_CST);
}

uint64_t pod_board__restarts(const struct pod_board *board)
{
	return __atomic_load_n(&board->shared->restarts, __ATOMIC_SEQ_CST);
}
