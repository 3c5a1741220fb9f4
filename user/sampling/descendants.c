// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "reading/process.h"
#include "sampling/descendants.h"
#include "sampling/targets.h"

/* How many Pythons a message names, and how many processes are examined for it. */
#define NAMED_MAX  5
#define LOOKED_MAX 64

/* If PIDs were used again while /proc was read, parents may form a circle. */
#define DEPTH_MAX 64

static int compare(const void *one, const void *other)
{
	const struct process_time *first = one, *second = other;

	return (first->pid > second->pid) - (first->pid < second->pid);
}

static const struct process_time *find(const struct process_times *times, pid_t pid)
{
	struct process_time key = { .pid = pid };

	return times->count ? bsearch(&key, times->list, times->count, sizeof(key), compare) : NULL;
}

struct process_times process_times__read(void)
{
	struct process_times times = { 0 };
	struct process process;
	size_t count;
	pid_t *pids = process__list(&count);

	times.list = xcalloc(count + 1, sizeof(*times.list));
	for (size_t i = 0; i < count; i++)
		if (!process__inspect(pids[i], &process) && !process.zombie &&
		    !process.kernel_thread)
			times.list[times.count++] =
				(struct process_time){ pids[i], process.parent, process.start_time,
						       process.cpu_ticks };
	qsort(times.list, times.count, sizeof(*times.list), compare);
	free(pids);
	return times;
}

static bool is_below(const struct process_times *times, const struct process_time *process,
		     pid_t pid)
{
	for (int depth = 0; process && depth < DEPTH_MAX; depth++) {
		if (process->parent == pid)
			return true;
		process = find(times, process->parent);
	}
	return false;
}

/* The short name of process PID, which the caller frees; NULL if it is not a Python. */
static char *python_name(pid_t pid)
{
	struct target_process *target = NULL;
	uint64_t signature = 0;
	char *name = NULL;

	if (!target__look(pid, &signature, &target))
		name = target__plain_name(target);
	target__free(target);
	return name;
}

size_t descendants__name(pid_t pid, char **names, char **pids)
{
	struct process_times times = process_times__read();
	size_t found = 0, looked = 0, sizes[2];
	FILE *files[] = { xopen_memstream(names, &sizes[0]), xopen_memstream(pids, &sizes[1]) };

	for (size_t i = 0; i < times.count && looked < LOOKED_MAX; i++) {
		char *name;

		if (!is_below(&times, &times.list[i], pid))
			continue;
		looked++;
		name = python_name(times.list[i].pid);
		if (name && found < NAMED_MAX) {
			fprintf(files[0], "%s%d (%s)", found ? ", " : "", times.list[i].pid, name);
			fprintf(files[1], "%s%d", found ? "," : "", times.list[i].pid);
		}
		found += name != NULL;
		free(name);
	}
	if (found > NAMED_MAX)
		fprintf(files[0], " and %zu more", found - NAMED_MAX);
	fclose(files[0]);
	fclose(files[1]);
	free(times.list);
	if (found)
		return found;
	free(*names);
	free(*pids);
	*names = *pids = NULL;
	return 0;
}

size_t descendants__used(const struct process_times *before, const struct process_times *after,
			 pid_t pid, double *seconds)
{
	size_t found = 0, looked = 0;
	uint64_t ticks = 0;

	for (size_t i = 0; i < after->count && looked < LOOKED_MAX; i++) {
		const struct process_time *now = &after->list[i];
		const struct process_time *then = find(before, now->pid);
		uint64_t used = now->cpu_ticks;
		char *name;

		if (then && then->start_time == now->start_time)
			used -= then->cpu_ticks;
		if (!used || !is_below(after, now, pid))
			continue;
		looked++;
		name = python_name(now->pid);
		ticks += name ? used : 0;
		found += name != NULL;
		free(name);
	}
	*seconds = (double)ticks / sysconf(_SC_CLK_TCK);
	return found;
}
