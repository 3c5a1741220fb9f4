// SPDX-License-Identifier: BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "system/open_files.h"
#include "target/process.h"
#include "target/target_files.h"

/* PF_KTHREAD of the kernel's include/linux/sched.h; its value is part of /proc/PID/stat. */
#define KERNEL_THREAD_FLAG 0x00200000
#define FORKED_FLAG	   0x00000040

/* No line of /proc/PID/maps is longer: a path, whose characters take four each at most. */
#define LINE_BYTES_MAX 32768

/* The kernel's default limit of mappings is 65,530. */
#define MAPPINGS_MAX (1024 * 1024)

/* More than a status has, but for who is in very many groups. */
#define STATUS_BYTES 4096

#define PATH_BYTES 64

/* Of the file NAME in the folder of process PID. */
static void write_path(pid_t pid, const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "/proc/%d/%s", pid, name);
}

/* Why a file in a process's folder could not be opened. */
static int explain_missing(void)
{
	return open_files__ran_out(-errno) ? -errno : -ESRCH;
}

/* The beginning of the file NAME in the folder of process PID, which the kernel writes at once,
 * with a NUL after it.  How long it is, or as explain_missing(). */
static ssize_t read_proc(pid_t pid, const char *name, char *bytes, size_t size)
{
	char path[PATH_BYTES];
	ssize_t length;
	int fd;

	write_path(pid, name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return explain_missing();
	do {
		length = read(fd, bytes, size - 1);
	} while (length < 0 && errno == EINTR);
	close(fd);
	if (length < 0)
		return -ESRCH;
	bytes[length] = '\0';
	return length;
}

/* *HAS_ENDED: the thread PID, of which this is but a remnant. */
static int read_stat(pid_t pid, struct process *process, bool *has_ended)
{
	char line[1024], state;
	uint64_t user_ticks, system_ticks;
	ssize_t length = read_proc(pid, "stat", line, sizeof(line));
	const char *rest;
	unsigned int flags;

	if (length < 0)
		return length;
	/* The name stands in parentheses and may hold any character. */
	rest = strrchr(line, ')');
	if (!rest || sscanf(rest,
			    ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			    " %*d %*d %*d %*d %*d %*d %" SCNu64,
			    &state, &process->parent, &flags, &user_ticks, &system_ticks,
			    &process->start_time) != 6)
		return -ESRCH;
	*has_ended = state == 'Z' || state == 'X';
	process->cpu_ticks = user_ticks + system_ticks;
	process->kernel_thread = flags & KERNEL_THREAD_FLAG;
	process->forked = flags & FORKED_FLAG;
	return 0;
}

/* Of the file NAME in the folder of process PID, which is a status, what follows FIELD in its line,
 * of which it reads SIZE bytes.  0; or as explain_missing(). */
static int read_status(pid_t pid, const char *name, const char *field, char *line, int size)
{
	char path[PATH_BYTES], bytes[STATUS_BYTES];
	size_t length = strlen(field);
	bool found = false;
	FILE *file;

	write_path(pid, name, path);
	file = fopen(path, "re");
	if (!file)
		return explain_missing();
	/* Else it asks first how large it is. */
	setvbuf(file, bytes, _IOFBF, sizeof(bytes));
	while (!found && fgets(line, size, file))
		found = strncmp(line, field, length) == 0;
	fclose(file);
	if (!found)
		return -ESRCH;
	memmove(line, line + length, strlen(line + length) + 1);
	return 0;
}

/* A thread of process PID that has not ended; 0 where there is none; or as explain_missing(). */
static pid_t find_living_thread(pid_t pid)
{
	struct process thread;
	struct dirent *entry;
	char path[PATH_BYTES];
	pid_t found = 0;
	bool has_ended;
	DIR *threads;

	write_path(pid, "task", path);
	threads = opendir(path);
	if (!threads && open_files__ran_out(-errno))
		return -errno;
	while (threads && !found && (entry = readdir(threads))) {
		pid_t tid = atoi(entry->d_name);

		if (tid && !read_stat(tid, &thread, &has_ended) && !has_ended)
			found = tid;
	}
	if (threads)
		closedir(threads);
	return found;
}

int process__inspect(pid_t pid, struct process *process)
{
	pid_t living = pid;
	bool has_ended;
	int error;

	memset(process, 0, sizeof(*process));
	process->pid = pid;
	error = read_stat(pid, process, &has_ended);
	if (error)
		return error;
	if (has_ended)
		living = find_living_thread(pid);
	if (living < 0)
		return living;
	process->zombie = !living;
	process->reader = living ? living : pid;
	return 0;
}

int process__thread_group(pid_t pid, pid_t *tgid)
{
	char line[64];
	int error = read_status(pid, "status", "Tgid:", line, sizeof(line));

	if (!error && sscanf(line, "%d", tgid) != 1)
		error = -ESRCH;
	return error;
}

int process__user(pid_t pid, uid_t *uid)
{
	char line[256];
	int error = read_status(pid, "status", "Uid:", line, sizeof(line));

	if (!error && sscanf(line, "%*u %u", uid) != 1)
		error = -ESRCH;
	return error;
}

uint64_t process__start_time(pid_t pid)
{
	struct process process;
	bool has_ended;

	return read_stat(pid, &process, &has_ended) ? 0 : process.start_time;
}

pid_t process__reader(pid_t pid)
{
	struct process process;

	return process__inspect(pid, &process) ? pid : process.reader;
}

/* What the file NAME in the folder of process PID says of a thread's numbers. */
static size_t read_numbers(pid_t pid, const char *name, pid_t numbers[PID_NAMESPACES_MAX])
{
	size_t count = 0;
	char line[512];

	if (read_status(pid, name, "NSpid:", line, sizeof(line)))
		return 0;
	for (char *at = line, *end; count < PID_NAMESPACES_MAX; at = end) {
		numbers[count] = strtol(at, &end, 10);
		if (end == at)
			break;
		count++;
	}
	return count;
}

size_t process__numbers(pid_t pid, pid_t numbers[PID_NAMESPACES_MAX])
{
	return read_numbers(pid, "status", numbers);
}

pid_t process__inner_tid(pid_t pid, pid_t tid)
{
	pid_t numbers[PID_NAMESPACES_MAX];
	char name[32];
	size_t count;

	snprintf(name, sizeof(name), "task/%d/status", tid);
	count = read_numbers(pid, name, numbers);
	return count ? numbers[count - 1] : 0;
}

size_t process__cgroups(pid_t pid, char *bytes, size_t size)
{
	ssize_t length = read_proc(pid, "cgroup", bytes, size);

	return length > 0 ? length : 0;
}

size_t process__read_file(pid_t pid, pid_t reader, const char *name, char *bytes, size_t size)
{
	char path[PATH_BYTES];

	write_path(reader, name, path);
	return target_file__read_start(pid, path, bytes, size);
}

/* Of a process's folder, that is read line by line. */
struct line_file {
	pid_t pid;
	int fd;
	size_t start, end; /* of what was read and not parsed yet */
	char bytes[LINE_BYTES_MAX];
};

static bool parse_mapping(const char *line, struct mapping *mapping)
{
	unsigned int major_number, minor_number;
	char permissions[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &mapping->start,
		   &mapping->end, permissions, &mapping->offset, &major_number, &minor_number,
		   &mapping->inode) != 7)
		return false;
	mapping->device = makedev(major_number, minor_number);
	mapping->executable = permissions[2] == 'x';
	return mapping->inode &&
	       (mapping->executable || (permissions[1] == 'w' && permissions[3] == 'p'));
}

/* The next of FILE's lines; NULL after the last. */
static char *next_line(struct line_file *file)
{
	for (;;) {
		char *line = file->bytes + file->start;
		size_t left = file->end - file->start;
		char *end = memchr(line, '\n', left);
		ssize_t got;

		if (end) {
			*end = '\0';
			file->start += end + 1 - line;
			return line;
		}
		memmove(file->bytes, line, left);
		file->start = 0;
		file->end = left;
		if (file->fd < 0)
			return NULL;
		got = target_file__read_on(file->pid, file->fd, file->bytes + left,
					   sizeof(file->bytes) - left);
		if (got <= 0)
			return NULL;
		file->end += got;
	}
}

ssize_t process__program_mappings(pid_t pid, pid_t reader, struct mapping **mappings)
{
	struct line_file file = { .pid = pid };
	size_t count = 0, capacity = 0;
	struct mapping mapping;
	char path[PATH_BYTES], *line;
	ssize_t got;

	*mappings = NULL;
	write_path(reader, "maps", path);
	got = target_file__begin(pid, path, file.bytes, sizeof(file.bytes), &file.fd);
	if (got < 0)
		return got == -ENOENT ? -ESRCH : got;
	file.end = got;
	while (count < MAPPINGS_MAX && (line = next_line(&file))) {
		if (!parse_mapping(line, &mapping))
			continue;
		*mappings = xgrow(*mappings, &capacity, count + 1, sizeof(mapping));
		(*mappings)[count++] = mapping;
	}
	if (file.fd >= 0)
		close(file.fd);
	return count;
}

#define MAPPING_PATH_BYTES 96

/* A link of the kernel's to the very file that is mapped: no path of the target's is followed. */
static void write_mapping_path(pid_t reader, const struct mapping *mapping,
			       char path[MAPPING_PATH_BYTES])
{
	snprintf(path, MAPPING_PATH_BYTES, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, reader,
		 mapping->start, mapping->end);
}

int process__open_mapping(pid_t pid, pid_t reader, const struct mapping *mapping)
{
	char path[MAPPING_PATH_BYTES];

	write_mapping_path(reader, mapping, path);
	return target_file__open(pid, path);
}

int process__identify_mapping(pid_t pid, pid_t reader, const struct mapping *mapping,
			      struct file_identity *identity)
{
	char path[MAPPING_PATH_BYTES];

	write_mapping_path(reader, mapping, path);
	return target_file__identify_path(pid, path, identity);
}
