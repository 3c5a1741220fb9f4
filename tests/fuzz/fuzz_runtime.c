// SPDX-License-Identifier: BSD-2-Clause
/* The input: how memory changes while it is read, and the contents of both a process's memory
 * and its only mapped file. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "input.h"
#include "python/runtime.h"
#include "reading/process.h"

#define PID 0

static struct input file;

int __wrap_process__open_mapping(pid_t pid, pid_t reader, const struct mapping *mapping);
ssize_t __wrap_process__program_mappings(pid_t pid, pid_t reader, struct mapping **mappings,
					 bool *cut);

/* The linker directs calls of the functions without __wrap_ here (see the Makefile). */
int __wrap_process__open_mapping(pid_t pid, pid_t reader, const struct mapping *mapping)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	(void)pid;
	(void)reader;
	(void)mapping;
	CHECK(fd >= 0 && write(fd, file.next, file.left) == (ssize_t)file.left);
	return fd;
}

ssize_t __wrap_process__program_mappings(pid_t pid, pid_t reader, struct mapping **mappings,
					 bool *cut)
{
	(void)pid;
	(void)reader;
	*cut = false;
	*mappings = calloc(2, sizeof(**mappings));
	for (int i = 0; i < 2; i++)
		(*mappings)[i] = (struct mapping){
			.end = file.left, .device = 1, .inode = 1, .executable = i
		};
	return 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct runtime runtime;
	unsigned int changes;

	file = (struct input){ bytes, size };
	changes = input__number(&file, 1);
	memory__set(file.next, file.left, changes);
	if (!runtime__find(PID, &runtime)) {
		CHECK(*runtime.version);
		CHECK(runtime.layout.frame_bytes <= FRAME_FIELD_MAX);
	}
	return 0;
}
