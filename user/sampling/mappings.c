// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each CPU has an event that counts nothing, but whose ring the kernel fills with mappings: which
 * process maps which part of a file.  Where a ring was full, the kernel writes how many records
 * it lost, before the next record.
 *
 * The lives of processes are reported another way (bpf/processes.bpf.h).  A process must be known
 * before its mappings are handed over.  So only records that were in the rings before those reports
 * were taken are handed over.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "sampling/mappings.h"
#include "system/cpus.h"

/* Room for some 500 records, behind the page with the kernel's position. */
#define RING_BYTES (64 << 10)

/* PERF_RECORD_MMAP2, up to the part of the file; more follows. */
struct mapped {
	struct perf_event_header header;
	uint32_t pid, tid;
	struct mapped_file file;
};

union record {
	struct perf_event_header header;
	struct mapped mapped;
	struct {
		struct perf_event_header header;
		uint64_t id, count;
	} lost;
};

struct ring {
	int fd;
	struct perf_event_mmap_page *head; /* NULL: not mapped */
	uint64_t taken, marked;
	uint64_t asked; /* up to here the sink was asked whether they can wait */
};

struct mappings {
	struct mappings_sink sink;
	int epoll_fd; /* of all rings */
	uint64_t lost;
	size_t count;
	struct ring rings[];
};

static int open_event(uint32_t cpu)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.mmap2 = 1,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Makes EPOLL_FD readable whenever FD is. */
static int poll_with(int epoll_fd, int fd)
{
	struct epoll_event readable = { .events = EPOLLIN };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &readable) ? -errno : 0;
}

/* Opens RING on CPU; -ENODEV where that has gone offline. */
static int open_ring(struct ring *ring, uint32_t cpu, int epoll_fd)
{
	void *memory;

	ring->fd = open_event(cpu);
	if (ring->fd < 0)
		return ring->fd;
	memory = mmap(NULL, sysconf(_SC_PAGESIZE) + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		      ring->fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->head = memory;
	return poll_with(epoll_fd, ring->fd);
}

int mappings__open(const struct mappings_sink *sink, int epoll_fd, struct mappings **result)
{
	uint32_t *online;
	ssize_t count = cpus__online(&online);
	struct mappings *mappings;
	int error;

	if (count < 0)
		return count;
	mappings = xcalloc(1, sizeof(*mappings) + count * sizeof(mappings->rings[0]));
	mappings->sink = *sink;
	mappings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	error = mappings->epoll_fd < 0 ? -errno : poll_with(epoll_fd, mappings->epoll_fd);
	for (ssize_t i = 0; i < count && !error; i++) {
		error = open_ring(&mappings->rings[mappings->count], online[i], mappings->epoll_fd);
		if (error != -ENODEV)
			mappings->count++;
		else
			error = 0;
	}
	free(online);
	if (error)
		mappings__free(mappings);
	else
		*result = mappings;
	return error;
}

void mappings__free(struct mappings *mappings)
{
	if (!mappings)
		return;
	for (size_t i = 0; i < mappings->count; i++) {
		const struct ring *ring = &mappings->rings[i];

		if (ring->head)
			munmap(ring->head, ring->head->data_offset + RING_BYTES);
		if (ring->fd >= 0)
			close(ring->fd);
	}
	if (mappings->epoll_fd >= 0)
		close(mappings->epoll_fd);
	free(mappings);
}

int mappings__fd(const struct mappings *mappings)
{
	return mappings ? mappings->epoll_fd : -1;
}

/* The position up to which the kernel has written. */
static uint64_t head_of(const struct ring *ring)
{
	return __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
}

void mappings__mark(struct mappings *mappings)
{
	for (size_t i = 0; mappings && i < mappings->count; i++)
		mappings->rings[i].marked = head_of(&mappings->rings[i]);
}

/* Copies BYTES from position AT of RING to RECORD. */
static void copy(const struct ring *ring, uint64_t at, void *record, size_t bytes)
{
	const char *ring_bytes = (char *)ring->head + ring->head->data_offset;
	size_t start = at % RING_BYTES, left = RING_BYTES - start;

	memcpy(record, ring_bytes + start, bytes < left ? bytes : left);
	if (bytes > left)
		memcpy((char *)record + left, ring_bytes, bytes - left);
}

/* The beginning of the record at position *AT of RING; moves *AT behind the record. */
static union record read_record(const struct ring *ring, uint64_t *at)
{
	union record record = { 0 };
	size_t bytes;

	copy(ring, *at, &record, sizeof(record.header));
	bytes = record.header.size;
	copy(ring, *at, &record, bytes < sizeof(record) ? bytes : sizeof(record));
	*at += bytes ? bytes : sizeof(record.header);
	return record;
}

/* Memory without a file has no inode.  A process of another PID namespace has no PID. */
static bool is_of_file(const union record *record)
{
	return record->header.type == PERF_RECORD_MMAP2 && record->mapped.file.part.inode &&
	       record->mapped.pid;
}

static void take_one(struct mappings *mappings, struct ring *ring)
{
	const struct mappings_sink *sink = &mappings->sink;
	union record record = read_record(ring, &ring->taken);

	if (record.header.type == PERF_RECORD_LOST)
		mappings->lost += record.lost.count;
	if (is_of_file(&record))
		sink->map(sink->context, record.mapped.pid, &record.mapped.file);
}

size_t mappings__take(struct mappings *mappings)
{
	size_t taken = 0;

	for (size_t i = 0; mappings && i < mappings->count; i++) {
		struct ring *ring = &mappings->rings[i];

		for (; ring->taken < ring->marked; taken++)
			take_one(mappings, ring);
		__atomic_store_n(&ring->head->data_tail, ring->taken, __ATOMIC_RELEASE);
	}
	return taken;
}

/* Whether a record of RING that the sink was not asked about cannot wait. */
static bool ring_urges(const struct mappings *mappings, struct ring *ring)
{
	const struct mappings_sink *sink = &mappings->sink;
	uint64_t head = head_of(ring);
	bool urges = false;

	if (ring->asked < ring->taken)
		ring->asked = ring->taken;
	while (ring->asked < head && !urges) {
		union record record = read_record(ring, &ring->asked);

		urges = is_of_file(&record) &&
			sink->urges(sink->context, record.mapped.pid, &record.mapped.file);
	}
	return urges;
}

bool mappings__urge(struct mappings *mappings)
{
	for (size_t i = 0; mappings && i < mappings->count; i++)
		if (ring_urges(mappings, &mappings->rings[i]))
			return true;
	return false;
}

uint64_t mappings__lost(const struct mappings *mappings)
{
	return mappings ? mappings->lost : 0;
}
