// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash_table.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "reading/process.h"
#include "reading/root_folder.h"
#include "reading/target_files.h"
#include "unwind/perf_map.h"
#include "unwind/perf_maps.h"

/* Bytes that are read of one file, and of all files of a process that replace one another.  Names
 * go into a profile and stay there. */
#define FILE_BYTES_MAX	  (64 * 1024 * 1024)
#define PROCESS_BYTES_MAX (256 * 1024 * 1024)

/* Above this, maps that use more than an equal share of the memory are not read on. */
#define ALL_BYTES_MAX (128 * 1024 * 1024)

/* Bytes that are read at a time, because all else waits. */
#define READ_BYTES (2 * 1024 * 1024)

/* The time before a file is read on, unless one reading was not enough; and the part of the time
 * that all readings may take: 1 / TIME_PART. */
#define AGAIN_NS  1000000000LL
#define TIME_PART 20

/* The longest time between two looks for lacking names.  It doubles when a file has nothing new. */
#define LOOK_MAX_NS (32 * AGAIN_NS)

/* The shortest time before stacks are defined again. */
#define NEWS_NS (4 * 1000000000LL)

/* A look for lacking names begins no other file after this time. */
#define TURN_NS (10 * 1000000LL)

/* The last addresses that lacked a name. */
#define LACKING_MAX 64

/* The last bytes that were read tell whether a file was only appended to. */
#define MARK_BYTES 64

struct process_map {
	uint64_t serial; /* key */
	pid_t pid;	 /* 0: it has ended */
	struct perf_map *map;
	uint64_t device, inode, offset; /* of the file; the first byte that was not read */
	char mark[MARK_BYTES];		/* the bytes before that */
	size_t mark_bytes;
	size_t bytes;	 /* of memory that the map uses */
	uint64_t budget; /* bytes that may still be read of its files */
	bool has_more;
	int64_t again_ns; /* when it may be read on */
	uint64_t lacking[LACKING_MAX];
	size_t lacking_count;	  /* of all that were noted */
	int64_t look_ns, wait_ns; /* when to look for them; the last wait */
	UT_hash_handle hh;
};

struct perf_maps {
	struct process_map *processes;
	size_t bytes;
	bool has_news, has_warned;
	int64_t news_ns; /* when stacks may be defined again */
};

struct perf_maps *perf_maps__new(void)
{
	return xcalloc(1, sizeof(struct perf_maps));
}

static struct process_map *find(const struct perf_maps *maps, uint64_t serial)
{
	return HASH_GET(hh, maps->processes, &serial);
}

static struct process_map *get(struct perf_maps *maps, uint64_t serial, pid_t pid)
{
	struct process_map *process = find(maps, serial);

	if (process)
		return process;
	process = xcalloc(1, sizeof(*process));
	process->serial = serial;
	process->pid = pid;
	process->map = perf_map__new();
	process->budget = PROCESS_BYTES_MAX;
	HASH_ADD(hh, maps->processes, serial, sizeof(process->serial), process);
	return process;
}

static void account(struct perf_maps *maps, struct process_map *process)
{
	maps->bytes -= process->bytes;
	process->bytes = perf_map__bytes(process->map);
	maps->bytes += process->bytes;
}

static void begin_anew(struct perf_maps *maps, struct process_map *process)
{
	perf_map__free(process->map);
	process->map = perf_map__new();
	process->offset = process->mark_bytes = 0;
	account(maps, process);
}

static int open_map(pid_t pid)
{
	pid_t numbers[PID_NAMESPACES_MAX];
	size_t count = process__numbers(pid, numbers);
	struct file_identity directory;
	char path[32];
	int root, fd;
	uid_t owner;

	if (!count || process__user(pid, &owner))
		return -1;
	root = root_folder__open_alone(pid, &directory);
	if (root < 0)
		return -1;
	snprintf(path, sizeof(path), "tmp/perf-%d.map", numbers[count - 1]);
	fd = target_file__open_below(pid, root, path, owner);
	close(root);
	return fd;
}

/* Whether FD is the file that was read before, and was only appended to. */
static bool goes_on(const struct process_map *process, int fd, const struct file_identity *identity)
{
	char mark[MARK_BYTES];

	return process->device == identity->device && process->inode == identity->inode &&
	       process->offset <= identity->size &&
	       target_file__read(process->pid, fd, mark, process->mark_bytes,
				 process->offset - process->mark_bytes) &&
	       memcmp(mark, process->mark, process->mark_bytes) == 0;
}

/* Continues behind the first TAKEN of BYTES. */
static void go_on(struct process_map *process, const char *bytes, size_t taken)
{
	if (!taken)
		return;
	process->offset += taken;
	process->budget -= taken;
	process->mark_bytes = taken < MARK_BYTES ? taken : MARK_BYTES;
	memcpy(process->mark, bytes + taken - process->mark_bytes, process->mark_bytes);
}

static bool has_its_share(const struct perf_maps *maps, const struct process_map *process)
{
	return maps->bytes >= ALL_BYTES_MAX &&
	       process->bytes >= ALL_BYTES_MAX / HASH_COUNT(maps->processes);
}

static void warn(struct perf_maps *maps)
{
	if (!maps->has_warned)
		log__warning("perf maps take too much memory: some code of JITs is shown as "
			     "[anonymous]");
	maps->has_warned = true;
}

/* The number of bytes to read now of a file of SIZE bytes. */
static size_t length_of(struct perf_maps *maps, const struct process_map *process, uint64_t size)
{
	uint64_t left = (size < FILE_BYTES_MAX ? size : FILE_BYTES_MAX) - process->offset;

	if (left > process->budget)
		left = process->budget;
	if (!left || perf_map__is_full(process->map))
		return 0;
	if (has_its_share(maps, process)) {
		warn(maps);
		return 0;
	}
	return left < READ_BYTES ? left : READ_BYTES;
}

static void read_file(struct perf_maps *maps, struct process_map *process, int fd)
{
	struct file_identity identity;
	size_t length, taken = 0;
	char *bytes;

	if (!target_file__identify(fd, &identity))
		return;
	if (!goes_on(process, fd, &identity))
		begin_anew(maps, process);
	process->device = identity.device;
	process->inode = identity.inode;
	length = length_of(maps, process, identity.size);
	if (!length)
		return;
	bytes = xmalloc(length);
	if (target_file__read(process->pid, fd, bytes, length, process->offset))
		taken = perf_map__take(process->map, bytes, length);
	go_on(process, bytes, taken);
	free(bytes);
	account(maps, process);
	/* Fewer bytes may be an unfinished line. */
	process->has_more = taken && length_of(maps, process, identity.size) >= PERF_MAP_LINE_BYTES;
}

static size_t count_lacking(const struct process_map *process)
{
	return process->lacking_count < LACKING_MAX ? process->lacking_count : LACKING_MAX;
}

static void note_lacking(struct process_map *process, uint64_t address)
{
	for (size_t i = 0; i < count_lacking(process); i++)
		if (process->lacking[i] == address)
			return;
	process->lacking[process->lacking_count++ % LACKING_MAX] = address;
	process->look_ns = process->again_ns;
	process->wait_ns = AGAIN_NS;
}

/* Whether a lacking name has appeared.  Others are noted again with the new definitions. */
static bool find_lacking(struct process_map *process)
{
	for (size_t i = 0; i < count_lacking(process); i++)
		if (perf_map__name(process->map, process->lacking[i])) {
			process->lacking_count = 0;
			return true;
		}
	return false;
}

/* Reads on if it is time. */
static void read_on(struct perf_maps *maps, struct process_map *process, int64_t due_ns)
{
	int64_t begin_ns = now_ns(), wait_ns;
	int fd;

	if (!process->pid || due_ns < process->again_ns)
		return;
	process->has_more = false;
	fd = open_map(process->pid);
	if (fd >= 0) {
		read_file(maps, process, fd);
		target_file__close(process->pid, fd);
	}
	maps->has_news |= find_lacking(process);
	wait_ns = (now_ns() - begin_ns) * TIME_PART * HASH_COUNT(maps->processes);
	if (wait_ns < AGAIN_NS && !process->has_more)
		wait_ns = AGAIN_NS;
	process->again_ns = due_ns + wait_ns;
}

const char *perf_maps__name(struct perf_maps *maps, uint64_t serial, pid_t pid, uint64_t address,
			    int64_t now_ns)
{
	struct process_map *process = get(maps, serial, pid);
	const char *name;

	/* Even if there is a name: it may have been replaced. */
	read_on(maps, process, now_ns);
	name = perf_map__name(process->map, address);
	if (!name)
		note_lacking(process, address);
	return name;
}

static void look_for_lacking(struct perf_maps *maps, struct process_map *process, int64_t now_ns)
{
	uint64_t offset = process->offset;

	if (!process->lacking_count || now_ns < process->look_ns)
		return;
	read_on(maps, process, now_ns);
	if (process->offset != offset)
		process->wait_ns = AGAIN_NS;
	else if (process->wait_ns < LOOK_MAX_NS)
		process->wait_ns *= 2;
	process->look_ns = process->has_more ? process->again_ns : now_ns + process->wait_ns;
}

bool perf_maps__have_news(struct perf_maps *maps, int64_t now_ns)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + TURN_NS;
	struct process_map *process;

	for (process = maps->processes; process; process = process->hh.next) {
		look_for_lacking(maps, process, now_ns);
		if (clock_ns(CLOCK_MONOTONIC) > until_ns)
			break;
	}
	if (!maps->has_news || now_ns < maps->news_ns)
		return false;
	maps->has_news = false;
	maps->news_ns = now_ns + NEWS_NS;
	log__debug("perf maps have names that were lacking: stacks are defined anew");
	return true;
}

void perf_maps__end(struct perf_maps *maps, uint64_t serial)
{
	struct process_map *process = find(maps, serial);

	if (process)
		process->pid = 0;
}

static void forget(struct perf_maps *maps, struct process_map *process)
{
	maps->bytes -= process->bytes;
	HASH_DEL(maps->processes, process);
	perf_map__free(process->map);
	free(process);
}

void perf_maps__forget(struct perf_maps *maps, uint64_t serial)
{
	struct process_map *process = find(maps, serial);

	if (process)
		forget(maps, process);
}

void perf_maps__free(struct perf_maps *maps)
{
	struct process_map *process, *next;

	if (!maps)
		return;
	HASH_ITER (hh, maps->processes, process, next)
		forget(maps, process);
	free(maps);
}
