// SPDX-License-Identifier: BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/small_file.h"
#include "base/xalloc.h"
#include "reading/process.h"
#include "reading/reader.h"
#include "reading/target_files.h"
#include "system/limits.h"

/* PF_KTHREAD and PF_FORKNOEXEC of the kernel's include/linux/sched.h, as in /proc/PID/stat. */
#define KERNEL_THREAD_FLAG 0x00200000
#define FORKED_FLAG	   0x00000040

/* The limit for /proc/PID/maps.  With usual paths, the kernel's default limit of 65,530 mappings
 * takes half of it; with the longest paths, a gigabyte. */
#define MAPS_BYTES_MAX (16 * 1024 * 1024)

/* Longer than a status, unless the user is in very many groups. */
#define STATUS_BYTES 4096

/* Enough for all hierarchies of version 1, with paths longer than systemd's. */
#define CGROUPS_BYTES_MAX 16384

#define PATH_BYTES 64

/* The path of file NAME of process PID. */
static void write_path(pid_t pid, const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "/proc/%d/%s", pid, name);
}

/* Whether ERROR is a temporary lack, which tells nothing about the process. */
static bool is_want(int error)
{
	return limits__lack_files(error) || error == -ENOMEM;
}

/* What ERROR, from a file of a process, says. */
static int explain(int error)
{
	return is_want(error) ? error : -ESRCH;
}

/* Reads the start of file NAME of process PID, and adds a NUL.  Returns the length, or as
 * explain(). */
static ssize_t read_proc(pid_t pid, const char *name, char *bytes, size_t size)
{
	char path[PATH_BYTES];
	ssize_t length;

	write_path(pid, name, path);
	length = small_file__read(path, bytes, size);
	return length < 0 ? explain(length) : length;
}

static int read_stat(pid_t pid, struct process *process)
{
	char line[1024];
	uint64_t user_ticks, system_ticks, memory_bytes, code_start;
	ssize_t length = read_proc(pid, "stat", line, sizeof(line));
	const char *rest;
	unsigned int flags;

	if (length < 0)
		return length;
	/* The name stands in parentheses and may contain any character. */
	rest = strrchr(line, ')');
	if (!rest || sscanf(rest,
			    ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			    " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %*d %*u %" SCNu64,
			    &process->state, &process->parent, &flags, &user_ticks, &system_ticks,
			    &process->start_time, &memory_bytes, &code_start) != 8)
		return -ESRCH;
	process->cpu_ticks = user_ticks + system_ticks;
	process->kernel_thread = flags & KERNEL_THREAD_FLAG;
	process->forked = flags & FORKED_FLAG;
	/* The kernel sets the address of the code after all is mapped.  Without the right to read
	 * it, it is 1. */
	process->executes = memory_bytes && !code_start;
	return 0;
}

/* Whether only the zombie of the thread is left. */
static bool has_ended(const struct process *thread)
{
	return thread->state == 'Z' || thread->state == 'X';
}

/* Reads what follows FIELD in the status file NAME of process PID into LINE, of SIZE bytes.  0, or
 * as explain(). */
static int read_status(pid_t pid, const char *name, const char *field, char *line, int size)
{
	char path[PATH_BYTES], bytes[STATUS_BYTES];
	size_t length = strlen(field);
	bool found = false;
	FILE *file;

	write_path(pid, name, path);
	file = fopen(path, "re");
	if (!file)
		return explain(-errno);
	/* Without this, stdio calls fstat first. */
	setvbuf(file, bytes, _IOFBF, sizeof(bytes));
	while (!found && fgets(line, size, file))
		found = strncmp(line, field, length) == 0;
	fclose(file);
	if (!found)
		return -ESRCH;
	memmove(line, line + length, strlen(line + length) + 1);
	return 0;
}

/* A thread of process PID that has not ended; 0: none; or as explain(). */
static pid_t find_living_thread(pid_t pid)
{
	struct process thread;
	struct dirent *entry;
	char path[PATH_BYTES];
	pid_t found = 0;
	DIR *threads;

	write_path(pid, "task", path);
	threads = opendir(path);
	if (!threads && is_want(-errno))
		return -errno;
	while (threads && !found && (entry = readdir(threads))) {
		pid_t tid = atoi(entry->d_name);

		if (tid && !read_stat(tid, &thread) && !has_ended(&thread))
			found = tid;
	}
	if (threads)
		closedir(threads);
	return found;
}

int process__inspect(pid_t pid, struct process *process)
{
	pid_t living = pid;
	int error;

	memset(process, 0, sizeof(*process));
	process->pid = pid;
	error = read_stat(pid, process);
	if (error)
		return error;
	if (has_ended(process))
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

pid_t process__reader(pid_t pid)
{
	struct process process;

	return process__inspect(pid, &process) ? pid : process.reader;
}

/* The PIDs in the status file NAME of process PID. */
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

char *process__cgroups(pid_t pid)
{
	char *bytes = xmalloc(CGROUPS_BYTES_MAX);
	ssize_t length = read_proc(pid, "cgroup", bytes, CGROUPS_BYTES_MAX);
	char *lines = length > 0 ? xstrndup(bytes, length) : NULL;

	free(bytes);
	return lines;
}

size_t process__read_file(pid_t pid, pid_t reader, const char *name, char *bytes, size_t size)
{
	char path[PATH_BYTES];
	int fd = -1;
	ssize_t got;

	write_path(reader, name, path);
	got = target_file__read_on(pid, path, &fd, bytes, size);
	if (fd >= 0)
		close(fd);
	return got > 0 ? got : 0;
}

pid_t *process__list(size_t *count)
{
	DIR *processes = opendir("/proc");
	size_t capacity = 0;
	struct dirent *entry;
	pid_t *pids = NULL;

	*count = 0;
	while (processes && (entry = readdir(processes))) {
		pid_t pid = atoi(entry->d_name);

		if (pid <= 0)
			continue;
		pids = xgrow(pids, &capacity, *count + 1, sizeof(*pids));
		pids[(*count)++] = pid;
	}
	if (processes)
		closedir(processes);
	return pids;
}

/* Whether the file FOLDER/PATH/NAME contains WORD. */
static bool file_has(const char *folder, const char *path, const char *name, const char *word)
{
	char *full = xasprintf("%s%s/%s", folder, path, name), bytes[256];

	small_file__read(full, bytes, sizeof(bytes));
	free(full);
	return strstr(bytes, word);
}

/* LINE is of /proc/PID/cgroup, HIERARCHY:CONTROLLERS:PATH.  Only the usual mount points are
 * searched. */
static bool is_frozen(char *line)
{
	char *controllers = strchr(line, ':'),
	     *path = controllers ? strchr(++controllers, ':') : NULL;

	if (!path)
		return false;
	*path++ = '\0';
	if (!*controllers)
		return file_has("/sys/fs/cgroup", path, "cgroup.events", "frozen 1") ||
		       file_has("/sys/fs/cgroup/unified", path, "cgroup.events", "frozen 1");
	return strcmp(controllers, "freezer") == 0 &&
	       file_has("/sys/fs/cgroup/freezer", path, "freezer.state", "FR");
}

const char *process__stopped_by(pid_t pid)
{
	char *lines = process__cgroups(pid), *rest = lines, *line;
	struct process process;
	const char *by = NULL;

	if (!process__inspect(pid, &process) && (process.state == 'T' || process.state == 't'))
		by = process.state == 'T' ? "by a signal, such as SIGSTOP" : "by a debugger";
	while (!by && (line = strsep(&rest, "\n")))
		by = is_frozen(line) ? "by its cgroup's freezer" : NULL;
	free(lines);
	return by;
}

/* The kernel's name for its image. */
#define VDSO_TEXT "[vdso]"

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
	mapping->is_vdso = !mapping->inode && strstr(line, VDSO_TEXT);
	return mapping->executable ||
	       (mapping->inode && permissions[1] == 'w' && permissions[3] == 'p');
}

/* An errand may be abandoned and started again.  Everything that it allocates is here. */
struct maps {
	pid_t pid, reader;
	char *text; /* ends with a NUL */
	size_t capacity;
	bool cut; /* the file is longer than is read */
	ssize_t error;
};

/* One errand, as each hand-over may have to wait for a CPU. */
static void read_maps(void *context)
{
	struct maps *maps = context;
	char path[PATH_BYTES];
	size_t length = 0;
	ssize_t got;
	int fd = -1;

	write_path(maps->reader, "maps", path);
	do {
		maps->text =
			xgrow(maps->text, &maps->capacity, length + TARGET_FILE_BLOCK_BYTES + 1, 1);
		got = target_file__read_on(maps->pid, path, &fd, maps->text + length,
					   TARGET_FILE_BLOCK_BYTES);
		length += got > 0 ? got : 0;
	} while (fd >= 0 && length < MAPS_BYTES_MAX);
	maps->cut = fd >= 0;
	if (maps->cut)
		close(fd);
	maps->text[length] = '\0';
	maps->error = got < 0 ? got : 0;
}

/* The mappings in the lines of TEXT.  The last line may be cut, and is then left out. */
static ssize_t parse_mappings(char *text, bool anonymous, struct mapping **mappings)
{
	size_t count = 0, capacity = 0;
	char *next = text, *line;
	struct mapping mapping;

	while ((line = strsep(&next, "\n")) && next) {
		if (!parse_mapping(line, &mapping) || !(mapping.inode || anonymous))
			continue;
		*mappings = xgrow(*mappings, &capacity, count + 1, sizeof(mapping));
		(*mappings)[count++] = mapping;
	}
	return count;
}

/* ANONYMOUS: executable memory without a file is wanted, too. */
static ssize_t read_mappings(pid_t pid, pid_t reader, bool anonymous, struct mapping **mappings,
			     bool *cut)
{
	struct maps maps = { .pid = pid, .reader = reader };
	ssize_t result;

	reader__send(read_maps, &maps);
	*cut = maps.cut;
	*mappings = NULL;
	result = maps.error ? maps.error : parse_mappings(maps.text, anonymous, mappings);
	free(maps.text);
	return result == -ENOENT ? -ESRCH : result;
}

ssize_t process__program_mappings(pid_t pid, pid_t reader, struct mapping **mappings, bool *cut)
{
	return read_mappings(pid, reader, false, mappings, cut);
}

ssize_t process__code_mappings(pid_t pid, pid_t reader, struct mapping **mappings, bool *cut)
{
	return read_mappings(pid, reader, true, mappings, cut);
}

#define MAPPING_PATH_BYTES 96

/* The kernel's link to the mapped file itself: no path of the target is followed. */
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

/* It precedes the type of a mount.  The kernel writes blanks in paths as \040. */
#define BEFORE_TYPE " - "
#define USER_OPTION "user_id="

/* What follows the first BLANKS blanks in TEXT; NULL if there are fewer. */
static const char *behind_blanks(const char *text, int blanks)
{
	while (text && blanks--) {
		text = strchr(text, ' ');
		text = text ? text + 1 : NULL;
	}
	return text;
}

/* Whether LINE of a mountinfo is such a mount, with *DEVICE and *OWNER. */
static bool parse_fuse_mount(const char *line, dev_t *device, uid_t *owner)
{
	const char *type = strstr(line, BEFORE_TYPE), *options, *user;
	unsigned int major_number, minor_number;

	if (!type || sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) != 2)
		return false;
	type += strlen(BEFORE_TYPE);
	options = behind_blanks(type, 2);
	if (strncmp(type, "fuse", 4) != 0 || !options || strstr(options, "allow_other"))
		return false;
	user = strstr(options, USER_OPTION);
	*device = makedev(major_number, minor_number);
	return user && sscanf(user + strlen(USER_OPTION), "%u", owner) == 1;
}

static bool maps_device(const struct mapping *mappings, ssize_t count, dev_t device)
{
	for (ssize_t i = 0; i < count; i++)
		if (mappings[i].device == device)
			return true;
	return false;
}

bool process__fuse_owner(pid_t pid, uid_t *owner)
{
	pid_t reader = process__reader(pid);
	char *text = xcalloc(1, TARGET_FILE_BLOCK_BYTES + 1), *next = text, *line;
	struct mapping *mappings;
	bool cut, found = false;
	ssize_t count = process__program_mappings(pid, reader, &mappings, &cut);
	dev_t device;

	process__read_file(pid, reader, "mountinfo", text, TARGET_FILE_BLOCK_BYTES);
	while (!found && (line = strsep(&next, "\n")))
		found = parse_fuse_mount(line, &device, owner) &&
			maps_device(mappings, count, device);
	free(mappings);
	free(text);
	return found;
}
