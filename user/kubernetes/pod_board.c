// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/xalloc.h"
#include "kubernetes/pod_board.h"

struct pod_board *pod_board__new(void)
{
	void *memory = mmap(NULL, sizeof(struct pod_board), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void pod_board__free(struct pod_board *board)
{
	if (board)
		munmap(board, sizeof(*board));
}

bool pod_board__write(struct pod_board *board, const char *text, size_t length)
{
	uint64_t serial = board->written + 1;

	board->crowded = length > BOARD_BYTES;
	if (length > BOARD_BYTES)
		return false;
	board->begun = serial;
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(board->text[serial % 2], text, length);
	board->length[serial % 2] = length;
	board->written = serial;
	return true;
}

char *pod_board__read(const struct pod_board *board, uint64_t *serial, size_t *length)
{
	uint64_t last = board->written, size = board->length[last % 2];
	char *text;

	/* The writer talks to the network, so its numbers are not trusted. */
	if (last == *serial || size > BOARD_BYTES)
		return NULL;
	text = xmalloc(size + 1);
	memcpy(text, board->text[last % 2], size);
	text[size] = '\0';
	atomic_thread_fence(memory_order_seq_cst);
	if (board->begun <= last + 1) {
		*serial = last;
		*length = size;
		return text;
	}
	free(text);
	return NULL;
}
