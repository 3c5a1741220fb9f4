// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include <utlist.h>

#include "base/xalloc.h"
#include "watch/watched.h"

#define NS_PER_MS 1000000LL

/* The first wait between looks at a process that may become a Python, and the longest. */
#define LOOK_NS	    NS_PER_MS
#define LOOK_NS_MAX (50 * NS_PER_MS)

/* A look that takes longer is slow.  After the first slow one a process rests for as long as that
 * took, since it may have read files that are cached now.  After later ones it rests REST_FACTOR
 * times as long, which bounds the CPU time spent on it. */
#define SLOW_NS	    (5 * NS_PER_MS)
#define REST_FACTOR 50

/* The first wait before an identity is read again, and the last. */
#define READ_NS	    (100 * NS_PER_MS)
#define READ_NS_MAX (10000 * NS_PER_MS)

/* A process may map any number of files. */
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

static struct watched **queue_of(struct watched_table *table, const struct watched *watched)
{
	return &table->to_read[watched->readings];
}

static void stop_reading(struct watched_table *table, struct watched *watched)
{
	if (watched->read_ns)
		DL_DELETE2(*queue_of(table, watched), watched, read_prev, read_next);
	watched->read_ns = 0;
}

struct target_process *watched__remove(struct watched_table *table, struct watched *watched)
{
	struct target_process *target = watched->target ? watched->target : watched->unwanted;

	watched__look_at(table, watched, INT64_MAX);
	stop_reading(table, watched);
	HASH_DELETE(hh, table->all, watched);
	HASH_DELETE(by_pid, table->by_pid, watched);
	free(watched->files);
	free(watched->mapped);
	free(watched->command);
	free(watched->ancestor);
	free(watched);
	return target;
}

char *watched__take_ancestor(struct watched *watched)
{
	const struct target_process *target = watched->target ? watched->target : watched->unwanted;
	const struct identity *identity = target && !target->outcome ? &target->identity : NULL;
	char *name = watched->ancestor;

	if (identity && identity->short_name && (!identity->is_worker || identity->is_inherited))
		return xstrdup(identity->short_name);
	watched->ancestor = NULL;
	return name;
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
	if (look_ns < watched->rest_ns)
		look_ns = watched->rest_ns;
	if (watched->look_ns == INT64_MAX && look_ns != INT64_MAX)
		DL_APPEND(table->due, watched);
	if (watched->look_ns != INT64_MAX && look_ns == INT64_MAX)
		DL_DELETE(table->due, watched);
	watched->look_ns = look_ns;
}

void watched__look_after(struct watched_table *table, struct watched *watched, int64_t wait_ns,
			 int64_t now)
{
	watched->look_wait_ns = wait_ns;
	watched__look_at(table, watched, now + wait_ns);
}

void watched__wait(struct watched_table *table, struct watched *watched, bool changed, int64_t now)
{
	int64_t wait_ns = changed ? LOOK_NS : 2 * watched->look_wait_ns;

	watched__look_after(table, watched, wait_ns < LOOK_NS_MAX ? wait_ns : LOOK_NS_MAX, now);
}

/* Turns the list: the entries before WATCHED move to its end. */
void watched__begin_with(struct watched_table *table, struct watched *watched)
{
	struct watched *first = table->due;

	if (watched == first)
		return;
	first->prev->next = first;
	watched->prev->next = NULL;
	table->due = watched;
}

/* Plans a look now that does not depend on the result of the last one. */
static void look_anew(struct watched_table *table, struct watched *watched, int64_t now)
{
	watched__look_at(table, watched, now);
	watched->look_wait_ns = LOOK_NS;
	watched->signature = 0;
	watched->is_other = false;
	watched->is_done = false;
}

void watched__ask(struct watched_table *table, struct watched *watched,
		  const struct process_record *record, int64_t now)
{
	look_anew(table, watched, now);
	if (watched->file_count == FILES_MAX)
		return;
	watched->files = xgrow(watched->files, &watched->file_capacity, watched->file_count + 1,
			       sizeof(*watched->files));
	watched->files[watched->file_count++] =
		(struct asked_file){ record->file, record->start,
				     record->event == PROCESS_EXECUTED };
}

void watched__map(struct watched_table *table, struct watched *watched,
		  const struct mapped_file *file, int64_t now)
{
	look_anew(table, watched, now);
	/* It is loading a program. */
	watched->since_ns = now;
	if (watched->mapped_count == FILES_MAX)
		return;
	watched->mapped = xgrow(watched->mapped, &watched->mapped_capacity,
				watched->mapped_count + 1, sizeof(*watched->mapped));
	watched->mapped[watched->mapped_count++] = *file;
}

void watched__note_look(struct watched *watched, int64_t took_ns, int64_t now)
{
	if (took_ns <= SLOW_NS)
		return;
	watched->rest_ns = now + (watched->slow_ns ? REST_FACTOR : 1) * took_ns;
	watched->slow_ns = took_ns;
}

void watched__be_done(struct watched_table *table, struct watched *watched, int64_t now)
{
	watched->is_done = true;
	watched__look_at(table, watched, now + REST_FACTOR * watched->slow_ns);
}

static void read_later(struct watched_table *table, struct watched *watched, int64_t now)
{
	bool is_last = watched->readings == READ_WAITS - 1;

	watched->read_ns = now + (is_last ? READ_NS_MAX : READ_NS << watched->readings);
	DL_APPEND2(*queue_of(table, watched), watched, read_prev, read_next);
}

void watched__begin_to_read(struct watched_table *table, struct watched *watched, bool seldom,
			    int64_t now)
{
	stop_reading(table, watched);
	watched->readings = seldom ? READ_WAITS - 1 : 0;
	read_later(table, watched, now);
}

struct watched *watched__next_to_read(struct watched_table *table, int64_t now, bool *settled)
{
	for (size_t i = 0; i < READ_WAITS; i++) {
		struct watched *watched = table->to_read[i];

		if (!watched || now < watched->read_ns)
			continue;
		stop_reading(table, watched);
		*settled = i == READ_WAITS - 1;
		watched->readings += !*settled;
		read_later(table, watched, now);
		return watched;
	}
	return NULL;
}
