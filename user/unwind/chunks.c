// SPDX-License-Identifier: BSD-2-Clause
/*
 * Room is only taken, and given back all at once: the files of a machine change slowly, and new
 * rows are made in milliseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/xalloc.h"
#include "pybpfprof.h"
#include "unwind/chunks.h"

struct chunk {
	int fd;
	uint8_t *memory;
};

struct chunks *chunks__new(int map_fd, uint64_t budget)
{
	struct chunks *chunks = xcalloc(1, sizeof(*chunks));
	uint64_t most = (uint64_t)UNWIND_CHUNKS_MAX * CHUNK_SIZE;

	chunks->map_fd = map_fd;
	chunks->limit = (budget < most ? budget : most) & ~(uint64_t)(CHUNK_SIZE - 1);
	return chunks;
}

void chunks__free(struct chunks *chunks)
{
	if (!chunks)
		return;
	for (size_t i = 0; i < chunks->count; i++) {
		munmap(chunks->all[i].memory, CHUNK_SIZE);
		close(chunks->all[i].fd);
	}
	free(chunks->all);
	free(chunks);
}

/* Stores chunk NUMBER in the map.  The kernel waits until no program uses the old one. */
static int install(const struct chunks *chunks, uint32_t number, int fd)
{
	return bpf_map_update_elem(chunks->map_fd, &number, &fd, 0) ? -errno : 0;
}

static int add_chunk(struct chunks *chunks)
{
	const struct bpf_map_create_opts options = { .sz = sizeof(options),
						     .map_flags = BPF_F_MMAPABLE };
	struct chunk chunk;
	int error;

	chunk.fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(uint32_t), CHUNK_SIZE,
				  1, &options);
	if (chunk.fd < 0)
		return chunk.fd;
	chunk.memory = mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, chunk.fd, 0);
	error = chunk.memory == MAP_FAILED ? -errno : install(chunks, chunks->count, chunk.fd);
	if (error) {
		if (chunk.memory != MAP_FAILED)
			munmap(chunk.memory, CHUNK_SIZE);
		close(chunk.fd);
		return error;
	}
	chunks->all =
		xgrow(chunks->all, &chunks->capacity, chunks->count + 1, sizeof(*chunks->all));
	chunks->all[chunks->count++] = chunk;
	return 0;
}

int chunks__take(struct chunks *chunks, size_t size, size_t count, bool in_one, uint32_t *number)
{
	uint64_t bytes = (uint64_t)size * count, start = (chunks->used + size - 1) & ~(size - 1);

	if (in_one && start / CHUNK_SIZE != (start + bytes - 1) / CHUNK_SIZE)
		start = (start + CHUNK_SIZE - 1) & ~(uint64_t)(CHUNK_SIZE - 1);
	if ((in_one && bytes > CHUNK_SIZE) || start > chunks->limit ||
	    bytes > chunks->limit - start)
		return -ENOSPC;
	while (chunks->count * (uint64_t)CHUNK_SIZE < start + bytes) {
		int error = add_chunk(chunks);

		if (error)
			return error;
	}
	chunks->used = start + bytes;
	*number = start / size;
	return 0;
}

void *chunks__at(const struct chunks *chunks, size_t size, uint32_t number)
{
	uint64_t at = (uint64_t)size * number;

	return chunks->all[at / CHUNK_SIZE].memory + at % CHUNK_SIZE;
}

void chunks__begin_anew(struct chunks *chunks)
{
	chunks->used = 0;
	if (chunks->count)
		install(chunks, 0, chunks->all[0].fd);
}
