// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/stopped.h"
#include "reading/process.h"

#define CGROUPS_BYTES 16384

/* Whether the file at FOLDER, PATH and NAME has WORD. */
static bool file_has(const char *folder, const char *path, const char *name, const char *word)
{
	char *full = xasprintf("%s%s/%s", folder, path, name), bytes[256];
	FILE *file = fopen(full, "re");
	size_t length = file ? fread(bytes, 1, sizeof(bytes) - 1, file) : 0;

	if (file)
		fclose(file);
	free(full);
	bytes[length] = '\0';
	return strstr(bytes, word);
}

/* Of one LINE of /proc/PID/cgroup: HIERARCHY:CONTROLLERS:PATH.  Its folder is not known where
 * cgroups are mounted elsewhere than by custom. */
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

const char *stopped__by(pid_t pid)
{
	char *lines = xmalloc(CGROUPS_BYTES), *rest = lines, *line;
	struct process process;
	const char *by = NULL;

	if (!process__inspect(pid, &process) && (process.state == 'T' || process.state == 't'))
		by = process.state == 'T' ? "by a signal, such as SIGSTOP" : "by a debugger";
	if (!by && process__cgroups(pid, lines, CGROUPS_BYTES))
		while (!by && (line = strsep(&rest, "\n")))
			by = is_frozen(line) ? "by its cgroup's freezer" : NULL;
	free(lines);
	return by;
}
