// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/now.h"
#include "base/xalloc.h"
#include "processes/cgroup.h"
#include "processes/command_name.h"
#include "processes/identity.h"
#include "processes/service_name.h"
#include "reading/reader.h"
#include "reading/process.h"
#include "reading/target_files.h"
#include "system/passwd.h"

/* Longer than any name.  A process chooses the length of its command line. */
#define COMMAND_BYTES_MAX 4096

#define COMM_BYTES_MAX 64

/* With thousands of services in a cluster, every container has some variables of each. */
#define ENVIRONMENT_BYTES_MAX TARGET_FILE_BLOCK_BYTES

/* More than anybody nests shells. */
#define ANCESTORS_MAX 32

/* The kernel's mark of a removed file. */
#define REMOVED " (deleted)"

#define SECOND_NS 1000000000ULL

/* The base name of the executable; NULL if it is unknown. */
static char *read_executable(pid_t pid)
{
	char path[PATH_MAX], link[32];
	const char *slash;
	size_t removed;
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0)
		return NULL;
	path[length] = '\0';
	removed = strlen(REMOVED);
	if ((size_t)length > removed && strcmp(path + length - removed, REMOVED) == 0)
		path[length - removed] = '\0';
	slash = strrchr(path, '/');
	return xstrdup(slash ? slash + 1 : path);
}

/* An errand may be abandoned and started again (reader.h).  Everything that it allocates is here,
 * so that it can be freed. */
struct reading {
	pid_t pid;
	enum identify what;
	struct process process;
	struct identity *identity;
	const struct identity *before; /* the last identity; NULL: none */
	char *bytes;		       /* a buffer for its files */
	char *executable;
	int error;
};

/* Reads at most SIZE bytes from the start of PROCESS's file NAME.  Returns how many. */
static size_t read_file(const struct reading *reading, const struct process *process,
			const char *name, size_t size)
{
	return process__read_file(process->pid, process->reader, name, reading->bytes, size);
}

static char *read_comm(const struct reading *reading)
{
	size_t length = read_file(reading, &reading->process, "comm", COMM_BYTES_MAX);

	if (length && reading->bytes[length - 1] == '\n')
		length--;
	return length ? xstrndup(reading->bytes, length) : NULL;
}

/* Reads the command line, and the executable's name.  Returns the length of the former. */
static size_t read_words(struct reading *reading, const struct process *process)
{
	free(reading->executable);
	/* A thread that has ended has no link to its executable. */
	reading->executable = read_executable(process->reader);
	return read_file(reading, process, "cmdline", COMMAND_BYTES_MAX);
}

/* The kernel updates the parent's PID when the parent ends.  But it can end, and its PID be reused,
 * between both reads. */
static bool find_parent(const struct process *child, struct process *parent)
{
	return child->parent && !process__inspect(child->parent, parent) &&
	       parent->start_time <= child->start_time;
}

static bool says_what_it_runs(enum command_kind kind)
{
	return kind == COMMAND_PYTHON || kind == COMMAND_UNPACKED;
}

static char *read_archive(const struct reading *reading, const struct process *process)
{
	size_t length = read_file(reading, process, "environ", ENVIRONMENT_BYTES_MAX);

	return service_name__archive(reading->bytes, length);
}

/* The short name of the nearest ancestor that is a Python and no worker.  NULL: there is none, or a
 * process in between cannot be read. */
static char *read_ancestor(struct reading *reading)
{
	struct process process = reading->process, child;
	enum command_kind kind = COMMAND_OTHER;
	size_t length = 1;
	char *archive;

	for (int i = 0; i < ANCESTORS_MAX && length && !says_what_it_runs(kind); i++) {
		child = process;
		if (!find_parent(&child, &process))
			return NULL;
		length = read_words(reading, &process);
		kind = command_name__kind(reading->bytes, length, reading->executable);
	}
	if (!length || !says_what_it_runs(kind))
		return NULL;
	archive = kind == COMMAND_UNPACKED ? read_archive(reading, &process) : NULL;
	if (archive)
		return archive;
	length = read_words(reading, &process);
	return command_name__of(reading->bytes, length, reading->executable);
}

/* Replaces the NULs between words by spaces.  NULL: there are no words. */
static char *join_words(const char *words, size_t length)
{
	char *text;

	while (length && (words[length - 1] == '\0' || words[length - 1] == '\n'))
		length--;
	if (!length)
		return NULL;
	text = xmalloc(length + 1);
	for (size_t i = 0; i < length; i++)
		text[i] = words[i] ? words[i] : ' ';
	text[length] = '\0';
	return text;
}

/* The archive that PEX unpacked; NULL: unknown. */
static const char *known_archive(const struct reading *reading)
{
	const struct identity *before = reading->before;

	return before && before->archive ? before->archive : reading->identity->archive;
}

static void read_names(struct reading *reading)
{
	struct identity *identity = reading->identity;
	const char *archive = known_archive(reading);
	enum command_kind kind;
	size_t length;

	identity->comm = read_comm(reading);
	length = read_words(reading, &reading->process);
	kind = command_name__kind(reading->bytes, length, reading->executable);
	identity->wordless = !length;
	identity->is_worker = kind == COMMAND_WORKER;
	identity->command = join_words(reading->bytes, length);
	if (!identity->command && identity->comm)
		identity->command = xasprintf("[%s]", identity->comm);
	if (kind == COMMAND_UNPACKED && archive)
		identity->short_name = xstrdup(archive);
	else
		identity->short_name =
			command_name__of(reading->bytes, length, reading->executable);
	if (!identity->short_name && identity->comm)
		identity->short_name = xstrdup(identity->comm);
	if (identity->is_worker && !(reading->before && reading->before->is_inherited)) {
		char *name = read_ancestor(reading);

		identity__inherit(identity, name);
		free(name);
	}
}

static void read_cgroup(struct reading *reading)
{
	struct identity *identity = reading->identity;
	struct cgroup cgroup;

	identity->cgroups = process__cgroups(reading->process.reader);
	if (!identity->cgroups)
		return;
	cgroup__parse(identity->cgroups, &cgroup);
	identity->cgroup = cgroup.path;
	identity->container_id = cgroup.container_id;
	identity->container_runtime = cgroup.container_runtime;
	identity->pod_uid = cgroup.pod_uid;
	identity->unit = cgroup.unit;
}

static void read_environment(struct reading *reading)
{
	size_t length = read_file(reading, &reading->process, "environ", ENVIRONMENT_BYTES_MAX);

	reading->identity->service_name = service_name__of(reading->bytes, length);
	reading->identity->archive = service_name__archive(reading->bytes, length);
}

/* Process PID can make this wait. */
static bool identify(pid_t pid, const char *path, struct file_identity *identity)
{
	int fd = target_file__open_directory(pid, path, identity);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool has_our_root(pid_t pid)
{
	struct file_identity ours, theirs;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return identify(pid, "/", &ours) && identify(pid, path, &theirs) &&
	       ours.inode == theirs.inode && ours.device == theirs.device;
}

static char *name_user(pid_t pid, uid_t uid)
{
	char *name = has_our_root(pid) ? passwd__name(uid) : NULL;

	return name ? name : xasprintf("%u", uid);
}

/* Converts clock ticks since boot to real time. */
static uint64_t unix_ns(uint64_t ticks)
{
	uint64_t per_second = sysconf(_SC_CLK_TCK);
	uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);

	return boot_ns + ticks / per_second * SECOND_NS +
	       ticks % per_second * SECOND_NS / per_second;
}

/* The errand: the process can make the read of any file wait. */
static void read_identity(void *context)
{
	struct reading *reading = context;
	struct identity *identity = reading->identity;
	struct process now;

	identity__free(identity);
	reading->error = process__user(reading->pid, &identity->uid);
	if (reading->error)
		return;
	if (reading->what == IDENTIFY_ALL)
		read_environment(reading);
	if (reading->what != IDENTIFY_OWNER)
		read_names(reading);
	read_cgroup(reading);
	identity->user = name_user(reading->process.reader, identity->uid);
	identity->start_time = reading->process.start_time;
	identity->start_unix_ns = unix_ns(identity->start_time);
	if (process__inspect(reading->pid, &now) || now.start_time == identity->start_time)
		return;
	identity__free(identity);
	reading->error = -ESRCH;
}

/* IDENTITY is empty.  BEFORE is the last identity, or NULL. */
static int read_what(const struct process *process, enum identify what,
		     const struct identity *before, struct identity *identity)
{
	struct reading reading = { .pid = process->pid,
				   .what = what,
				   .process = *process,
				   .identity = identity,
				   .before = before };

	reading.bytes = xmalloc(ENVIRONMENT_BYTES_MAX);
	reader__send(read_identity, &reading);
	free(reading.bytes);
	free(reading.executable);
	return reading.error;
}

int identity__read(pid_t pid, struct identity *identity)
{
	struct process process;
	int error = process__inspect(pid, &process);

	memset(identity, 0, sizeof(*identity));
	return error ? error : read_what(&process, IDENTIFY_ALL, NULL, identity);
}

/* All texts of an identity, which it owns. */
static const size_t texts[] = {
	offsetof(struct identity, command),	 offsetof(struct identity, short_name),
	offsetof(struct identity, comm),	 offsetof(struct identity, service_name),
	offsetof(struct identity, archive),	 offsetof(struct identity, user),
	offsetof(struct identity, cgroups),	 offsetof(struct identity, cgroup),
	offsetof(struct identity, container_id), offsetof(struct identity, pod_uid),
	offsetof(struct identity, unit),
};

#define TEXT_COUNT (sizeof(texts) / sizeof(texts[0]))

static char **text_at(struct identity *identity, size_t i)
{
	return (char **)((char *)identity + texts[i]);
}

void identity__free(struct identity *identity)
{
	for (size_t i = 0; i < TEXT_COUNT; i++)
		free(*text_at(identity, i));
	memset(identity, 0, sizeof(*identity));
}

void identity__copy(const struct identity *identity, struct identity *copy)
{
	*copy = *identity;
	for (size_t i = 0; i < TEXT_COUNT; i++) {
		char **text = text_at(copy, i);

		*text = *text ? xstrdup(*text) : NULL;
	}
}

static void swap_texts(char **one, char **other)
{
	char *text = *one;

	*one = *other;
	*other = text;
}

/* Whether user or cgroups of PROCESS differ from IDENTITY's.  Reads only files that never make
 * their reader wait. */
static bool has_new_owner(const struct process *process, const struct identity *identity)
{
	char *cgroups;
	uid_t uid;
	bool is_new;

	if (identity->start_time != process->start_time || !identity->cgroups ||
	    process__user(process->pid, &uid) || uid != identity->uid)
		return true;
	cgroups = process__cgroups(process->reader);
	is_new = !cgroups || strcmp(cgroups, identity->cgroups) != 0;
	free(cgroups);
	return is_new;
}

int identity__read_again(pid_t pid, uint64_t start_time, enum identify what,
			 struct identity *identity)
{
	struct identity now = { 0 };
	struct process process;
	int error = process__inspect(pid, &process);

	if (!error && (process.zombie || (start_time && process.start_time != start_time)))
		error = -ESRCH;
	if (!error && what == IDENTIFY_OWNER && !has_new_owner(&process, identity))
		error = -EALREADY;
	if (!error)
		error = read_what(&process, what, identity, &now);
	if (error)
		return error;
	/* The real-time clock may have been set meanwhile. */
	if (start_time)
		now.start_unix_ns = identity->start_unix_ns;
	if (identity->service_name)
		swap_texts(&now.service_name, &identity->service_name);
	if (identity->archive)
		swap_texts(&now.archive, &identity->archive);
	if (what == IDENTIFY_OWNER)
		swap_texts(&now.comm, &identity->comm);
	if (what == IDENTIFY_OWNER || (now.wordless && !identity->wordless)) {
		swap_texts(&now.command, &identity->command);
		swap_texts(&now.short_name, &identity->short_name);
		now.wordless = identity->wordless;
		now.is_worker = identity->is_worker;
		now.is_inherited = identity->is_inherited;
	} else if (identity->is_inherited) {
		identity__inherit(&now, identity->short_name);
	}
	identity__free(identity);
	*identity = now;
	return 0;
}

void identity__take_words(const char *words, size_t length, struct identity *identity)
{
	free(identity->short_name);
	free(identity->command);
	identity->short_name = length ? command_name__of(words, length, NULL) : NULL;
	identity->command = join_words(words, length);
	identity->wordless = !length;
	identity->is_worker = command_name__kind(words, length, NULL) == COMMAND_WORKER;
	identity->is_inherited = false;
}

bool identity__retitle(struct identity *identity, const char *words, size_t length, bool cut)
{
	char *command = join_words(words, length), *name;
	const char *before = identity->command ? identity->command : "";

	if (!command ||
	    (cut ? strncmp(before, command, strlen(command)) == 0 : strcmp(before, command) == 0)) {
		free(command);
		return false;
	}
	name = command_name__of(words, length, NULL);
	swap_texts(&identity->command, &command);
	free(command);
	if (name)
		swap_texts(&identity->short_name, &name);
	free(name);
	identity->is_worker = identity->is_inherited = false;
	return true;
}

void identity__inherit(struct identity *identity, const char *name)
{
	if (!name || !identity->is_worker || identity->is_inherited)
		return;
	free(identity->short_name);
	identity->short_name = xstrdup(name);
	identity->is_inherited = true;
}
