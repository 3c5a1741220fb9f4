/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that this process maps, by their paths: /proc/PID/map_files needs a capability.  For
 * tests with process__open_mapping and process__identify_mapping wrapped. */
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

/* A part of the path of files that cannot be opened; NULL: all can. */
static const char *unopened;

/* A pipe: while it is empty no file can be opened; 0: there is none. */
static int awaited;

static inline int64_t await_pipe(void *desk)
{
	char byte;

	(void)desk;
	return read(awaited, &byte, 1);
}

/* Finds the path of what is mapped at START; returns whether there is one that may be opened. */
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
