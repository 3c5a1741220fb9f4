// SPDX-License-Identifier: BSD-2-Clause
/* The input: the contents of every file in a process's folder of /proc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "processes/cgroup.h"
#include "processes/command_name.h"
#include "processes/service_name.h"
#include "processes/identity.h"
#include "reading/process.h"

#define PART_BYTES 100

static struct input file;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

/* The linker directs calls of fopen() here (see the Makefile). */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strncmp(path, "/proc/", strlen("/proc/")) != 0)
		return __real_fopen(path, mode);
	return fmemopen((void *)file.next, file.left, "r");
}

ssize_t __wrap_target_file__read_on(pid_t pid, const char *path, int *fd, void *buffer,
				    size_t length);

/* The unread rest of a file. */
static struct input rest;

/* Reads in parts that end within lines. */
ssize_t __wrap_target_file__read_on(pid_t pid, const char *path, int *fd, void *buffer,
				    size_t length)
{
	size_t most = strstr(path, "/maps") ? PART_BYTES : length, got;

	(void)pid;
	if (*fd < 0)
		rest = file;
	got = most < length ? most : length;
	got = got < rest.left ? got : rest.left;
	memcpy(buffer, rest.next, got);
	rest.next += got;
	rest.left -= got;
	if (got && *fd < 0) {
		*fd = dup(STDERR_FILENO);
	} else if (!got && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return got;
}

static void check_mappings(void)
{
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__program_mappings(getpid(), getpid(), &mappings, &cut);

	for (ssize_t i = 0; i < count; i++)
		CHECK(mappings[i].inode);
	free(mappings);
}

/* Reads the input as lines of cgroups; the chosen path must be among them. */
static void check_cgroups(const uint8_t *bytes, size_t size)
{
	char *lines = strndup((const char *)bytes, size);
	struct cgroup cgroup;
	char *hierarchy;

	cgroup__parse(lines, &cgroup);
	CHECK(!cgroup.path || cgroup__is_within(lines, NULL, cgroup.path));
	CHECK(!cgroup.container_runtime || cgroup.container_id);
	cgroup__free(&cgroup);
	free(cgroup__of_folder(lines, &hierarchy));
	free(hierarchy);
	free(lines);
}

static void check_names(const uint8_t *bytes, size_t size)
{
	static const char *const executables[] = { NULL, "", "python3.12", "uwsgi" };

	for (size_t i = 0; i < sizeof(executables) / sizeof(executables[0]); i++) {
		enum command_kind kind =
			command_name__kind((const char *)bytes, size, executables[i]);
		char *name = command_name__of((const char *)bytes, size, executables[i]);

		CHECK(!name || *name);
		CHECK(kind != COMMAND_UNPACKED || name);
		free(name);
	}
	free(service_name__of((const char *)bytes, size));
	free(service_name__archive((const char *)bytes, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	pid_t numbers[PID_NAMESPACES_MAX];
	struct identity identity;
	struct process process;

	file = (struct input){ bytes, size };
	check_mappings();
	process__inspect(getpid(), &process);
	process__reader(getpid());
	process__inner_tid(getpid(), getpid());
	process__numbers(getpid(), numbers);
	check_cgroups(bytes, size);
	check_names(bytes, size);
	if (!identity__read(getpid(), &identity))
		identity__free(&identity);
	return 0;
}
