/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens this process's mapped files by path, because /proc/PID/map_files needs a capability.  The
 * test must be linked with process__open_mapping and process__identify_mapping wrapped. */
#ifndef PYBPFPROF_TESTS_OWN_MAPPINGS_H
#define PYBPFPROF_TESTS_OWN_MAPPINGS_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "reading/process.h"
#include "reading/reader.h"
#include "wrap.h"

static int files_opened;

/* Files with this text in their path cannot be opened; NULL: all can. */
static const char *unopened;

/* While this pipe is empty, opening a file blocks; 0: there is no pipe. */
static int awaited;

static inline int64_t await_pipe(void *desk)
{
	char byte;

	(void)desk;
	return read(awaited, &byte, 1);
}

/* Finds the path of the file mapped at START.  False: there is none, or it cannot be opened. */
static inline bool find_path(uint64_t start, char path[PATH_MAX])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128];
	uint64_t at;
	bool found = false;

	assert_non_null(maps);
	while (!found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%" SCNx64 "-%*x %*s %*x %*s %*u %4095[^\n]", &at, path) ==
				2 &&
			at == start;
	fclose(maps);
	return found && !(unopened && strstr(path, unopened));
}

WRAP(int, process__open_mapping, pid_t pid, pid_t reader, const struct mapping *mapping)
{
	char path[PATH_MAX];

	(void)reader;
	if (awaited)
		return reader__run(pid, await_pipe);
	if (!find_path(mapping->start, path))
		return -ENOENT;
	files_opened++;
	return open(path, O_RDONLY | O_CLOEXEC);
}

WRAP(int, process__identify_mapping, pid_t pid, pid_t reader, const struct mapping *mapping,
     struct file_identity *identity)
{
	char path[PATH_MAX];

	(void)reader;
	return find_path(mapping->start, path) ? target_file__identify_path(pid, path, identity)
					       : -ENOENT;
}

#endif
