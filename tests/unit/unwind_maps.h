/* SPDX-License-Identifier: BSD-2-Clause */
/* BPF's maps for unwinding, as user space writes them, in the test's own memory.  For tests with
 * bpf_map_create, bpf_map_update_elem and bpf_map_delete_elem wrapped. */
#ifndef PYBPFPROF_TESTS_UNWIND_MAPS_H
#define PYBPFPROF_TESTS_UNWIND_MAPS_H

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pybpfprof.h"
#include "wrap.h"

/* No process has descriptors with such numbers. */
enum { CHUNKS_FD = 1 << 20, FILES_FD, RULES_FD, TABLES_FD };

#define FAKE_TABLES_MAX 8

static struct unwind_maps {
	const uint32_t *chunks[UNWIND_CHUNKS_MAX];
	uint32_t made, installed, last_installed; /* chunks */
	int refuse_making, refuse_installing;	  /* errno */
	int last_fd;
	struct unwind_file files[UNWIND_FILES_MAX];
	struct unwind_rule rules[UNWIND_RULES_MAX];
	struct {
		uint64_t serial;
		struct unwind_table table;
	} tables[FAKE_TABLES_MAX];
	uint32_t table_count, tables_told;
} unwind_maps;

static inline void unwind_maps__clear(void)
{
	for (uint32_t i = 0; i < UNWIND_CHUNKS_MAX; i++)
		if (unwind_maps.chunks[i])
			munmap((void *)unwind_maps.chunks[i], CHUNK_SIZE);
	memset(&unwind_maps, 0, sizeof(unwind_maps));
}

/* Creates the memory of a chunk, which is written through mmap as that of a BPF map is. */
WRAP(int, bpf_map_create, enum bpf_map_type type, const char *name, __u32 key_bytes,
     __u32 value_bytes, __u32 entries, const struct bpf_map_create_opts *options)
{
	int fd;

	assert_int_equal(type, BPF_MAP_TYPE_ARRAY);
	assert_int_equal(key_bytes, sizeof(uint32_t));
	assert_int_equal(value_bytes, CHUNK_SIZE);
	assert_int_equal(entries, 1);
	assert_int_equal(options->map_flags, BPF_F_MMAPABLE);
	if (unwind_maps.refuse_making)
		return -unwind_maps.refuse_making;
	fd = memfd_create(name, MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, CHUNK_SIZE), 0);
	unwind_maps.made++;
	unwind_maps.last_fd = fd;
	return fd;
}

static inline int install_chunk(uint32_t number, int fd)
{
	if (unwind_maps.refuse_installing) {
		errno = unwind_maps.refuse_installing;
		return -errno;
	}
	assert_in_range(number, 0, UNWIND_CHUNKS_MAX - 1);
	if (unwind_maps.chunks[number])
		munmap((void *)unwind_maps.chunks[number], CHUNK_SIZE);
	unwind_maps.chunks[number] = mmap(NULL, CHUNK_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(unwind_maps.chunks[number], MAP_FAILED);
	unwind_maps.installed++;
	unwind_maps.last_installed = number;
	return 0;
}

/* A sample may come between any two writes, so the field that announces rows must come last. */
static inline int tell_file_entry(uint32_t number, const struct unwind_file *file)
{
	struct unwind_file whole = unwind_maps.files[number];

	whole.pages = file->pages;
	if (file->pages)
		assert_memory_equal(&whole, file, sizeof(whole));
	unwind_maps.files[number] = *file;
	return 0;
}

static inline struct unwind_table *unwind_maps__table(uint64_t serial)
{
	for (uint32_t i = 0; i < unwind_maps.table_count; i++)
		if (unwind_maps.tables[i].serial == serial)
			return &unwind_maps.tables[i].table;
	return NULL;
}

static inline int tell_table_entry(uint64_t serial, const struct unwind_table *table)
{
	struct unwind_table *known = unwind_maps__table(serial);

	if (!known) {
		assert_in_range(unwind_maps.table_count, 0, FAKE_TABLES_MAX - 1);
		unwind_maps.tables[unwind_maps.table_count].serial = serial;
		known = &unwind_maps.tables[unwind_maps.table_count++].table;
	}
	*known = *table;
	unwind_maps.tables_told++;
	return 0;
}

WRAP(int, bpf_map_update_elem, int fd, const void *key, const void *value, __u64 flags)
{
	uint32_t number;

	assert_int_equal(flags, BPF_ANY);
	memcpy(&number, key, sizeof(number));
	switch (fd) {
	case CHUNKS_FD:
		return install_chunk(number, *(const int *)value);
	case FILES_FD:
		return tell_file_entry(number, value);
	case RULES_FD:
		memcpy(&unwind_maps.rules[number], value, sizeof(*unwind_maps.rules));
		return 0;
	case TABLES_FD:
		return tell_table_entry(*(const uint64_t *)key, value);
	}
	errno = EBADF;
	return -errno;
}

WRAP(int, bpf_map_lookup_elem, int fd, const void *key, void *value)
{
	const struct unwind_table *table =
		fd == TABLES_FD ? unwind_maps__table(*(const uint64_t *)key) : NULL;

	if (table)
		memcpy(value, table, sizeof(*table));
	else
		errno = fd == TABLES_FD ? ENOENT : EBADF;
	return table ? 0 : -errno;
}

WRAP(int, bpf_map_delete_elem, int fd, const void *key)
{
	if (fd != TABLES_FD) {
		errno = EBADF;
		return -errno;
	}
	for (uint32_t i = 0; i < unwind_maps.table_count; i++)
		if (unwind_maps.tables[i].serial == *(const uint64_t *)key)
			unwind_maps.tables[i] = unwind_maps.tables[--unwind_maps.table_count];
	return 0;
}

/* Word NUMBER of the chunks. */
static inline uint32_t unwind_maps__word(uint32_t number)
{
	const uint32_t *chunk = unwind_maps.chunks[number / CHUNK_ROWS];

	assert_non_null(chunk);
	return chunk[number % CHUNK_ROWS];
}

/* The search of bpf/native.bpf.h: within one chunk, in 9 steps. */
static inline uint32_t search_rows(uint32_t before, uint32_t count, uint32_t low)
{
	const uint32_t *chunk = unwind_maps.chunks[before / CHUNK_ROWS];

	assert_non_null(chunk);
	for (int i = 0; i < 9 && count; i++) {
		uint32_t half = (count + 1) / 2;

		if (ROW_LOW(chunk[(before + half) % CHUNK_ROWS]) <= low) {
			before += half;
			count -= half;
		} else {
			count = half - 1;
		}
	}
	return chunk[before % CHUNK_ROWS];
}

/* The row that BPF finds for ADDRESS of FILE. */
static inline uint32_t unwind_maps__row(const struct unwind_file *file, uint64_t address)
{
	uint64_t at = address - file->base, page = at / UNWIND_TEXT_PAGE;
	uint32_t word;

	if (!file->pages)
		return ROW_NUMBERED(ROW_NONE, ROW_NOT_LOADED);
	if (page >= file->pages)
		return ROW_NUMBERED(ROW_NONE, ROW_NO_CODE);
	word = unwind_maps__word(file->directory + page);
	return search_rows(file->rows + DIRECTORY_FIRST(word) - 1, DIRECTORY_COUNT(word),
			   at % UNWIND_TEXT_PAGE);
}

#endif
