// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include <utlist.h>

#include "base/xalloc.h"
#include "watch/watched.h"

#define NS_PER_MS 1000000LL

/* How often a process is asked whether it is a Python by now. */
#define LOOK_NS	    NS_PER_MS
#define LOOK_NS_MAX (50 * NS_PER_MS)

/* A process may map one file after another. */
#define FILES_MAX 256

struct watched *watched__add(struct watched_table *table, struct target_key key, pid_t pid,
			     int64_t now)
{
	struct watched *watched = xcalloc(1, sizeof(*watched));

	watched->key = key;
	watched->pid = pid;
	watched->since_ns = now;
	watched->look_ns = INT64_MAX;
	watched->look_wait_ns = LOOK_NS;
	HASH_ADD(hh, table->all, key.serial, sizeof(key.serial), watched);
	HASH_ADD(by_pid, table->by_pid, pid, sizeof(watched->pid), watched);
	return watched;
}

struct watched *watched__find(const struct watched_table *table, uint64_t serial)
{
	struct watched *watched;

	HASH_FIND(hh, table->all, &serial, sizeof(serial), watched);
	return watched;
}

struct watched *watched__of_pid(const struct watched_table *table, pid_t pid)
{
	struct watched *watched;

	HASH_FIND(by_pid, table->by_pid, &pid, sizeof(pid), watched);
	return watched;
}

struct target_process *watched__remove(struct watched_table *table, struct watched *watched)
{
	struct target_process *target = watched->target;

	watched__look_at(table, watched, INT64_MAX);
	HASH_DELETE(hh, table->all, watched);
	HASH_DELETE(by_pid, table->by_pid, watched);
	target__free(watched->unwanted);
	free(watched->files);
	free(watched->command);
	free(watched);
	return target;
}

void watched__free(struct watched_table *table)
{
	while (table->all)
		target__free(watched__remove(table, table->all));
}

size_t watched__count(const struct watched_table *table)
{
	return HASH_COUNT(table->all);
}

size_t watched__targets(const struct watched_table *table, struct target_process ***targets)
{
	size_t count = 0;

	*targets = xcalloc(watched__count(table) + 1, sizeof(**targets));
	for (struct watched *watched = table->all; watched; watched = watched->hh.next)
		if (watched->target)
			(*targets)[count++] = watched->target;
	return count;
}

int64_t watched__due(const struct watched_table *table)
{
	int64_t due = INT64_MAX;

	for (const struct watched *watched = table->due; watched; watched = watched->next)
		due = watched->look_ns < due ? watched->look_ns : due;
	return due;
}

void watched__look_at(struct watched_table *table, struct watched *watched, int64_t look_ns)
{
	if (watched->look_ns == INT64_MAX && look_ns != INT64_MAX)
		DL_APPEND(table->due, watched);
	if (watched->look_ns != INT64_MAX && look_ns == INT64_MAX)
		DL_DELETE(table->due, watched);
	watched->look_ns = look_ns;
}

void watched__ask(struct watched_table *table, struct watched *watched,
		  const struct process_record *record, int64_t now)
{
	watched__look_at(table, watched, now);
	watched->look_wait_ns = LOOK_NS;
	if (watched->file_count == FILES_MAX)
		return;
	watched->files = xgrow(watched->files, &watched->file_capacity, watched->file_count + 1,
			       sizeof(*watched->files));
	watched->files[watched->file_count++] =
		(struct asked_file){ record->file, record->start,
				     record->event == PROCESS_EXECUTED };
}

void watched__wait(struct watched_table *table, struct watched *watched, bool changed, int64_t now)
{
	watched->look_wait_ns = changed ? LOOK_NS : 2 * watched->look_wait_ns;
	if (watched->look_wait_ns > LOOK_NS_MAX)
		watched->look_wait_ns = LOOK_NS_MAX;
	watched__look_at(table, watched, now + watched->look_wait_ns);
}
