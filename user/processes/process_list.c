// SPDX-License-Identifier: BSD-2-Clause
#include <dirent.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "processes/process_list.h"

pid_t *process_list__read(size_t *count)
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
