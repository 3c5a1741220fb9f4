// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "system/cpus.h"
#include "system/open_files.h"
#include "watch/registry.h"

void registry__note_threads(void)
{
	if (ARCHITECTURE.is_noted_late)
		cpus__visit();
}

int registry__add(struct watch *watch, pid_t pid, int64_t now, struct watched **watched)
{
	struct target_key key = { .serial = target_map__new_serial(watch->map) };
	pid_t namesake;
	int error = sampler__find_kernel_pid(watch->sampler, pid, &key.kernel_pid, &namesake);

	if (error)
		return error;
	if (namesake && namesake != pid && watch->following != FOLLOW_ALL)
		log__info("PID %d is taken as a PID of this PID namespace; PID %d on the host is "
			  "process %d here",
			  pid, pid, namesake);
	*watched = watched__add(&watch->watched, key, pid, now);
	return 0;
}

bool registry__claim(struct watch *watch, struct watched *watched)
{
	if (target_map__claim(watch->map, watched->key) ||
	    !target_map__has(watch->map, watched->key.kernel_pid))
		return true;
	registry__drop(watch, watched);
	return false;
}

void registry__drop(struct watch *watch, struct watched *watched)
{
	struct target_process *target;

	watch->set_aside -= watched->unwanted != NULL;
	watch->some_ended |= watched->target != NULL;
	target = watched__remove(&watch->watched, watched);
	if (target)
		symbolizer__end_target(watch->symbolizer, target);
}

void registry__remove(struct watch *watch, struct watched *watched)
{
	target_map__remove(watch->map, watched->key);
	registry__drop(watch, watched);
}

/* Whether NOW, which has TARGET's PID, is the same process.  The start time of a forked process is
 * not known until it is read. */
static bool is_the_one(const struct target_process *target, const struct process *now)
{
	const struct process *known = &target->process;

	return known->start_time == now->start_time || (known->forked && !known->start_time);
}

void registry__drop_ended(struct watch *watch, struct watched *watched)
{
	struct process process;
	int error = process__inspect(watched->pid, &process);

	if (error && error != -ESRCH)
		return;
	if (!error && !process.zombie &&
	    (!watched->target || is_the_one(watched->target, &process)))
		return;
	registry__remove(watch, watched);
}

static void warn_of_layouts(struct watch *watch, const struct target_process *target)
{
	if (!watch->warned_of_layouts)
		log__warning(
			"process %d (Python %s) cannot be unwound, nor can others like it: Pythons "
			"with %d different layouts were seen, and there is no room for more; "
			"restart pybpfprof to make room",
			target->process.pid, target->runtime.version, LAYOUTS_MAX);
	watch->warned_of_layouts = true;
}

int registry__put(struct watch *watch, struct watched *watched, struct target_process *target,
		  uint64_t *waited)
{
	if (!target->outcome) {
		int error = target_map__put(watch->map, watched->key, &target->runtime, waited);

		if (error != -ENOSPC)
			return error;
		warn_of_layouts(watch, target);
		target->outcome = OUTCOME_NO_LAYOUT;
	}
	return target_map__refuse(watch->map, watched->key, target->outcome, waited);
}

/* Plans the next check of WATCHED by the filter. */
static void plan_check(struct watch *watch, struct watched *watched)
{
	watched->is_undecided = watched->target->parent;
	if (process_filter__is_empty(watch->filter))
		watched__look_at(&watch->watched, watched, INT64_MAX);
	else
		watched__look_after(&watch->watched, watched,
				    watched->is_undecided ? CHECK_FORKED_NS : CHECK_NS, now_ns());
}

void registry__take_target(struct watch *watch, struct watched *watched,
			   struct target_process *target)
{
	/* A forked process has used no CPU yet.  The sum is of no use once a process has ended. */
	double used_s =
		target->process.start_time && !watch->some_ended ? target__cpu_seconds(target) : 0;

	target->key = watched->key;
	target->rate_shift = target_map__rate_shift(watch->map, watched->key);
	watched->target = target;
	watched->rest_ns = 0;
	plan_check(watch, watched);
	watch->cpu_before_s += used_s > 0 ? used_s : 0;
	if (!watch->first_pid && watch->following != FOLLOW_ALL)
		watch->first_pid = watched->pid;
	symbolizer__add_target(watch->symbolizer, target);
	/* The filter may have wanted it before, under another identity. */
	registry__describe(watch, target);
	registry__note_threads();
}

void registry__add_waited(struct watch *watch, const struct target_process *target,
			  enum outcome outcome, uint64_t waited)
{
	watch->waited += waited;
	counts__add_waited(watch->counts, target, outcome, waited);
}

void registry__describe(struct watch *watch, const struct target_process *target)
{
	if (symbolizer__has_sampled(watch->symbolizer, target))
		symbolizer__describe(watch->symbolizer, target);
}

bool registry__has_namesake(const struct watch *watch, const struct watched *watched)
{
	struct process now;

	return !target_map__holds(watch->map, watched->key) &&
	       !process__inspect(watched->pid, &now) && !now.zombie;
}

void registry__note_crowd(struct watch *watch)
{
	if (!watch->warned_of_crowd)
		log__warning("too many processes: some are not sampled until others end; raise the "
			     "limit with --max-processes");
	watch->warned_of_crowd = true;
	watch->full = true;
}

void registry__note_no_room(struct watch *watch, const struct watched *watched)
{
	struct scan *scan = &watch->scan;
	uint64_t counted = sampler__crowded(watch->sampler);

	registry__note_crowd(watch);
	if (!watched->is_found)
		return;
	/* BPF counts the processes that start without room, and each pass of a scan tries them
	 * again. Only the excess over BPF's count was not counted. */
	scan->crowded++;
	if (scan->crowded > counted + scan->missed)
		scan->missed = scan->crowded - counted;
}

bool registry__lacks_files(struct watch *watch, int error)
{
	if (!open_files__ran_out(error))
		return false;
	if (!watch->warned_of_files)
		open_files__warn(error);
	watch->warned_of_files = true;
	return true;
}
