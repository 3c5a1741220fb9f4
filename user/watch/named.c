// SPDX-License-Identifier: BSD-2-Clause
/*
 * It takes a tenth of a second to load the sampler.  Meanwhile a process that was opened may
 * execute another program, map a Python, or end and leave its PID to another process.  BPF reports
 * nothing of that, since it does not know the process yet.  So the process is first put into BPF's
 * map as one to wait for; from there on BPF reports what becomes of it.  Then what was found when
 * it was opened is used if the program is proved to be the same.  Otherwise the process is looked
 * at from scratch.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "reading/process.h"
#include "sampling/target_open.h"
#include "watch/discovery.h"
#include "watch/named.h"

struct named {
	pid_t pid;
	struct program program;	       /* the one it ran when it was opened */
	struct target_process *target; /* NULL: no Python, but it may start one */
};

/* Opens process PID, as target__open does. */
static enum exit_status open_one(const struct watch *watch, pid_t pid, bool *silent,
				 struct named *named)
{
	enum exit_status status;
	const char *by;

	named->pid = pid;
	/* Before target__open, which reports all errors. */
	process__identify_program(pid, &named->program);
	status = target__open(pid, watch->following == FOLLOW_NONE, silent, &named->target);
	if (named->target && watch->needs_gil &&
	    !layout_tells_holder(&named->target->runtime.layout))
		status = target__explain(pid, &named->target->runtime, -ENODATA);
	by = status || *silent ? NULL : process__stopped_by(pid);
	if (by)
		log__warning("process %d is stopped %s: it has no samples until it goes on", pid,
			     by);
	return status;
}

enum exit_status watch__open(struct watch *watch, const pid_t *pids, size_t count)
{
	enum exit_status status = STATUS_WRITTEN;
	size_t silent = 0;

	watch->named = xcalloc(count + 1, sizeof(*watch->named));
	for (size_t i = 0; i < count && !status; i++) {
		struct named *named = &watch->named[watch->named_count];
		bool is_silent;

		status = open_one(watch, pids[i], &is_silent, named);
		if (!status)
			watch->named_count++;
		if (!is_silent)
			continue;
		status = STATUS_WRITTEN;
		silent++;
	}
	if (watch->named_count)
		watch->first_pid = watch->named[0].pid;
	if (!silent || watch->named_count || status)
		return status;
	log__error("none of these processes responds: name others, or see what these wait for with "
		   "cat /proc/PID/stack");
	return STATUS_FAILED;
}

/* Has WATCHED sampled as what was opened.  0 or -errno. */
static int take_opened(struct watch *watch, struct named *named, struct watched *watched)
{
	struct target_process *target = named->target;
	int error = registry__put(watch, watched, target, &(uint64_t){ 0 });

	/* -ESTALE: it runs another program now, which BPF is about to report. */
	if (error)
		return error == -ESTALE ? 0 : error;
	named->target = NULL;
	registry__take_target(watch, watched, target);
	registry__drop_ended(watch, watched);
	return 0;
}

static int sample(struct watch *watch, struct named *named, int64_t now)
{
	uint64_t start_time = named->program.start_time;
	struct watched *watched;
	struct program program;
	int error = registry__add(watch, named->pid, now, &watched);

	if (error)
		return error == -ESRCH ? 0 : error;
	target_map__await(watch->map, watched->key);
	error = process__identify_program(named->pid, &program);
	if (error == -ESRCH || (!error && start_time && program.start_time != start_time))
		registry__remove(watch, watched);
	else if (named->target && process__is_same_program(&program, &named->program))
		return take_opened(watch, named, watched);
	else
		discovery__look_at(watch, watched, now);
	return 0;
}

int named__sample(struct watch *watch, int64_t now)
{
	int error = 0;

	for (size_t i = 0; i < watch->named_count && !error; i++)
		error = sample(watch, &watch->named[i], now);
	return error;
}

/* How many Python descendants of the named processes used CPU time, and how much in all. */
static size_t count_children(const struct watch *watch, double *used_s)
{
	struct process_times after;
	size_t count = 0;
	double part_s;

	*used_s = 0;
	if (watch->following != FOLLOW_NONE)
		return 0;
	after = process_times__read();
	for (size_t i = 0; i < watch->named_count; i++) {
		count += descendants__used(&watch->before, &after, watch->named[i].pid, &part_s);
		*used_s += part_s;
	}
	free(after.list);
	return count;
}

/* What stops one of the named processes, *PID; NULL: none is stopped. */
static const char *find_stopped(const struct watch *watch, pid_t *pid)
{
	const char *by = NULL;

	for (size_t i = 0; i < watch->named_count && !by; i++) {
		*pid = watch->named[i].pid;
		by = process__stopped_by(*pid);
	}
	return by;
}

void named__explain_idle(const struct watch *watch, double used_s)
{
	double by_children_s;
	pid_t stopped, pid = watch->first_pid;
	const char *by = find_stopped(watch, &stopped);
	size_t children = by ? 0 : count_children(watch, &by_children_s);

	if (by)
		log__warning("no samples: process %d is stopped %s", stopped, by);
	else if (children)
		log__warning("no samples: process %d used %s CPU in that time; its %zu Python "
			     "child%s used %.1f s: add -s",
			     pid, used_s > 0 ? "little" : "no", children, children > 1 ? "ren" : "",
			     by_children_s);
	else if (used_s > 0)
		log__warning("no samples: the time was too short for the rate");
	else
		log__warning("no samples: process %d used no CPU in that time", pid);
}

void named__free(struct watch *watch)
{
	for (size_t i = 0; i < watch->named_count; i++)
		target__free(watch->named[i].target);
	free(watch->named);
}
