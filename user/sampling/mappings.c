// SPDX-License-Identifier: BSD-2-Clause
/*
 * An event that counts nothing, on each CPU, is told what is mapped there: by whom, and which part
 * of which file.  The kernel writes that to a ring for each CPU, and what it had no room for it
 * counts there, before the next one that has.
 *
 * What is told of a process before (bpf/processes.bpf.h) comes another way.  So that who maps is
 * known when this is handed over, only what was there before that was taken is.
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

/* Room for some 500, behind a page that says how many there are. */
#define RING_BYTES (64 << 10)

/* How a record begins of what was mapped; the file's path is behind that. */
struct mapped {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, bytes, offset;
	uint32_t major, minor;
	uint64_t inode, generation;
};

/* Of what was not. */
struct lost {
	struct perf_event_header header;
	uint64_t id, count;
};

struct ring {
	int fd;
	struct perf_event_mmap_page *head; /* NULL: not mapped */
	uint64_t taken, marked;
	uint64_t asked; /* till where it was asked whether it can wait */
};

struct mappings {
	struct mappings_sink sink;
	int epoll_fd; /* of all rings */
	size_t page_bytes;
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

/* Has EPOLL_FD be readable where FD is. */
static int poll_with(int epoll_fd, int fd)
{
	struct epoll_event readable = { .events = EPOLLIN };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &readable) ? -errno : 0;
}

/* Opens RING on CPU; -ENODEV where that is not online any more. */
static int open_ring(struct ring *ring, uint32_t cpu, size_t page_bytes, int epoll_fd)
{
	void *memory;

	ring->fd = open_event(cpu);
	if (ring->fd < 0)
		return ring->fd;
	memory = mmap(NULL, page_bytes + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		      0);
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
	mappings->page_bytes = sysconf(_SC_PAGESIZE);
	mappings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	error = mappings->epoll_fd < 0 ? -errno : poll_with(epoll_fd, mappings->epoll_fd);
	for (ssize_t i = 0; i < count && !error; i++) {
		error = open_ring(&mappings->rings[mappings->count], online[i],
				  mappings->page_bytes, mappings->epoll_fd);
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
			munmap(ring->head, mappings->page_bytes + RING_BYTES);
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

/* Till where the kernel has written. */
static uint64_t head_of(const struct ring *ring)
{
	return __atomic_load_n(&ring->head->data_head, __ATOMIC_ACQUIRE);
}

void mappings__mark(struct mappings *mappings)
{
	for (size_t i = 0; mappings && i < mappings->count; i++)
		mappings->rings[i].marked = head_of(&mappings->rings[i]);
}

/* Copies BYTES to RECORD from AT in RING. */
static void copy(const struct mappings *mappings, const struct ring *ring, uint64_t at,
		 void *record, size_t bytes)
{
	const char *ring_bytes = (char *)ring->head + mappings->page_bytes;
	size_t start = at % RING_BYTES, left = RING_BYTES - start;

	memcpy(record, ring_bytes + start, bytes < left ? bytes : left);
	if (bytes > left)
		memcpy((char *)record + left, ring_bytes, bytes - left);
}

union record {
	struct perf_event_header header;
	struct mapped mapped;
	struct lost lost;
};

/* The beginning of the one that is at *AT in RING, which is behind it then. */
static union record read_record(const struct mappings *mappings, const struct ring *ring,
				uint64_t *at)
{
	union record record = { 0 };
	size_t bytes;

	copy(mappings, ring, *at, &record, sizeof(record.header));
	bytes = record.header.size;
	copy(mappings, ring, *at, &record, bytes < sizeof(record) ? bytes : sizeof(record));
	*at += bytes ? bytes : sizeof(record.header);
	return record;
}

/* What is of no file has none; and who is not of this PID namespace no number. */
static bool is_of_file(const union record *record)
{
	return record->header.type == PERF_RECORD_MMAP2 && record->mapped.inode &&
	       record->mapped.pid;
}

static struct mapped_file file_of(const struct mapped *mapped)
{
	return (struct mapped_file){ .part = { .inode = mapped->inode,
					       .generation = mapped->generation,
					       .offset = mapped->offset,
					       .bytes = mapped->bytes,
					       .major = mapped->major,
					       .minor = mapped->minor },
				     .start = mapped->start };
}

/* Takes the next of RING. */
static void take_one(struct mappings *mappings, struct ring *ring)
{
	const struct mappings_sink *sink = &mappings->sink;
	union record record = read_record(mappings, ring, &ring->taken);
	struct mapped_file file = file_of(&record.mapped);

	if (record.header.type == PERF_RECORD_LOST)
		mappings->lost += record.lost.count;
	if (is_of_file(&record))
		sink->map(sink->context, record.mapped.pid, &file);
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

/* Whether any of RING cannot wait that was not asked about. */
static bool ring_urges(const struct mappings *mappings, struct ring *ring)
{
	const struct mappings_sink *sink = &mappings->sink;
	uint64_t head = head_of(ring);
	bool urges = false;

	if (ring->asked < ring->taken)
		ring->asked = ring->taken;
	while (ring->asked < head && !urges) {
		union record record = read_record(mappings, ring, &ring->asked);
		struct mapped_file file = file_of(&record.mapped);

		urges = is_of_file(&record) && sink->urges(sink->context, record.mapped.pid, &file);
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
