// SPDX-License-Identifier: BSD-2-Clause
/* The input: what any file in a process's folder of /proc holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "input.h"
#include "process.h"

static struct input file;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

/* The linker has those who mean fopen() call this (see the Makefile). */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strncmp(path, "/proc/", strlen("/proc/")) != 0)
		return __real_fopen(path, mode);
	return fmemopen((void *)file.next, file.left, "r");
}

static void check_mappings(void)
{
	struct mapping *mappings;
	ssize_t count = process__program_mappings(getpid(), &mappings);

	for (ssize_t i = 0; i < count; i++)
		CHECK(mappings[i].inode);
	free(mappings);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	pid_t numbers[PID_NAMESPACES_MAX];
	struct process process;

	file = (struct input){ bytes, size };
	check_mappings();
	process__inspect(getpid(), &process);
	process__reader(getpid());
	process__inner_tid(getpid(), getpid());
	process__numbers(getpid(), numbers);
	free(process__command(getpid()));
	return 0;
}
