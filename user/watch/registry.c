// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "sampling/target_open.h"
#include "system/cpus.h"
#include "watch/registry.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* The first wait before the identity of a Python is read again, and the last.  A forked one may
 * change its identity right away. */
#define CHECK_NS	(100 * NS_PER_MS)
#define CHECK_NS_MAX	(10 * NS_PER_S)
#define CHECK_FORKED_NS (10 * NS_PER_MS)

/* A process older than this at its first sample is not expected to change. */
#define YOUNG_NS (10 * NS_PER_S)

/* Excluded Pythons take at most this part of BPF's map.  Others are not followed; BPF reports them
 * again when they execute another program. */
#define UNWANTED_PART 2

void registry__note_threads(void)
{
	if (ARCHITECTURE.is_noted_late)
		cpus__visit();
}

struct watched *registry__enter(struct watch *watch, struct target_key key, pid_t pid, int64_t now)
{
	struct watched *watched = xcalloc(1, sizeof(*watched));

	watched->key = key;
	watched->pid = pid;
	watched->since_ns = now;
	watched->look_ns = INT64_MAX;
	HASH_ADD(hh, watch->all, key.serial, sizeof(key.serial), watched);
	HASH_ADD(by_pid, watch->by_pid, pid, sizeof(watched->pid), watched);
	return watched;
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
	*watched = registry__enter(watch, key, pid, now);
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

struct watched *registry__find(const struct watch *watch, uint64_t serial)
{
	return HASH_GET(hh, watch->all, &serial);
}

struct watched *registry__of_pid(const struct watch *watch, pid_t pid)
{
	return HASH_GET(by_pid, watch->by_pid, &pid);
}

/* Removes and frees WATCHED.  Returns its target, wanted or not, for the caller. */
static struct target_process *forget(struct watch *watch, struct watched *watched)
{
	struct target_process *target = watched__python(watched);

	registry__look_at(watch, watched, INT64_MAX);
	HASH_DELETE(hh, watch->all, watched);
	HASH_DELETE(by_pid, watch->by_pid, watched);
	free(watched->files);
	free(watched->mapped);
	free(watched->command);
	free(watched->ancestor);
	free(watched);
	return target;
}

void registry__drop(struct watch *watch, struct watched *watched)
{
	struct target_process *target;

	watch->set_aside -= watched->unwanted != NULL;
	watch->some_ended |= watched->target != NULL;
	sampler__leave(watch->sampler, watched->key.serial);
	target = forget(watch, watched);
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

bool registry__has_namesake(const struct watch *watch, const struct watched *watched)
{
	struct process now;

	return !target_map__holds(watch->map, watched->key) &&
	       !process__inspect(watched->pid, &now) && !now.zombie;
}

void registry__free(struct watch *watch)
{
	while (watch->all)
		target__free(forget(watch, watch->all));
	free(watch->looks);
}

static void place(struct watch *watch, size_t at, struct watched *watched)
{
	watch->looks[at] = watched;
	watched->place = at;
}

/* Puts WATCHED into the heap: at AT, or where the order requires it from there. */
static void sift(struct watch *watch, size_t at, struct watched *watched)
{
	struct watched **looks = watch->looks;
	size_t child;

	for (; at && watched->look_ns < looks[(at - 1) / 2]->look_ns; at = (at - 1) / 2)
		place(watch, at, looks[(at - 1) / 2]);
	for (; (child = 2 * at + 1) < watch->look_count; at = child) {
		if (child + 1 < watch->look_count &&
		    looks[child + 1]->look_ns < looks[child]->look_ns)
			child++;
		if (watched->look_ns <= looks[child]->look_ns)
			break;
		place(watch, at, looks[child]);
	}
	place(watch, at, watched);
}

void registry__look_at(struct watch *watch, struct watched *watched, int64_t look_ns)
{
	bool was_planned = watched->look_ns != INT64_MAX;

	watched->look_ns = look_ns > watched->rest_ns ? look_ns : watched->rest_ns;
	if (look_ns != INT64_MAX && !was_planned) {
		watched->place = watch->look_count++;
		watch->looks = xgrow(watch->looks, &watch->look_capacity, watch->look_count,
				     sizeof(*watch->looks));
	}
	if (look_ns != INT64_MAX)
		sift(watch, watched->place, watched);
	else if (was_planned && --watch->look_count != watched->place)
		sift(watch, watched->place, watch->looks[watch->look_count]);
}

void registry__look_after(struct watch *watch, struct watched *watched, int64_t wait_ns,
			  int64_t now)
{
	watched->look_wait_ns = wait_ns;
	registry__look_at(watch, watched, now + wait_ns);
}

struct watched *registry__take_due(struct watch *watch, int64_t now)
{
	struct watched *first = watch->look_count ? watch->looks[0] : NULL;

	if (!first || first->look_ns > now)
		return NULL;
	registry__look_at(watch, first, INT64_MAX);
	return first;
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
	watched->is_undecided = target->parent;
	registry__look_at(watch, watched, INT64_MAX);
	if (!process_filter__is_empty(watch->filter))
		registry__look_after(watch, watched, target->parent ? CHECK_FORKED_NS : CHECK_NS,
				     now_ns());
	watch->cpu_before_s += used_s > 0 ? used_s : 0;
	if (!watch->first_pid && watch->following != FOLLOW_ALL)
		watch->first_pid = watched->pid;
	symbolizer__add_target(watch->symbolizer, target);
	sampler__enter(watch->sampler, watched->key.serial, watched->pid);
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

void registry__identify(struct watch *watch, struct target_process *target, enum identify what)
{
	if (target__identify(target, watch->map, what))
		registry__describe(watch, target);
}

void registry__note_crowd(struct watch *watch)
{
	if (!watch->warned_of_crowd)
		log__warning("too many processes: some are not sampled until others end; raise the "
			     "limit with --max-processes");
	watch->warned_of_crowd = true;
	watch->full = true;
}

/* BPF did not take WATCHED, because of ERROR. */
static void leave(struct watch *watch, struct watched *watched, int error)
{
	struct scan *scan = &watch->scan;
	uint64_t counted = sampler__crowded(watch->sampler);

	if (error == -E2BIG)
		registry__note_crowd(watch);
	else
		log__warning("process %d cannot be sampled: %s", watched->pid, strerror(-error));
	if (error == -E2BIG && watched->is_found) {
		/* BPF counts the processes that start without room, and each pass of a scan tries
		 * them again.  Only the excess over BPF's count was not counted. */
		scan->crowded++;
		if (scan->crowded > counted + scan->missed)
			scan->missed = scan->crowded - counted;
	}
	registry__drop(watch, watched);
}

/* Follows WATCHED as TARGET, which the filter excludes.  False if there is no place for it: then
 * WATCHED was freed. */
static bool hold(struct watch *watch, struct watched *watched, struct target_process *target)
{
	target->key = watched->key;
	watched->unwanted = target;
	watched->rest_ns = 0;
	watch->set_aside++;
	if (watch->following != FOLLOW_ALL || watch->set_aside <= watch->places / UNWANTED_PART)
		return true;
	registry__remove(watch, watched);
	return false;
}

const char *registry__command(const struct watched *parent)
{
	const struct target_process *target = parent ? parent->unwanted : NULL;

	if (target && target->identity.short_name)
		return target->identity.short_name;
	return parent ? parent->command : NULL;
}

void registry__set_command(struct watched *watched, const char *command)
{
	char *copy = command ? xstrdup(command) : NULL;

	free(watched->command);
	watched->command = copy;
}

void registry__await(struct watch *watch, struct watched *watched, const struct watched *parent,
		     int64_t now)
{
	if (!hold(watch, watched, target__fork(parent->unwanted, watched->pid)))
		return;
	registry__set_command(watched, registry__command(parent));
	watched->is_undecided = true;
	registry__look_after(watch, watched, CHECK_FORKED_NS, now);
}

void registry__exclude(struct watch *watch, struct watched *watched, enum exclusion why,
		       const char *command)
{
	counts__exclude(watch->counts, watched->key.serial, why, command);
	watched->is_excluded = true;
}

void registry__set_aside(struct watch *watch, struct watched *watched,
			 struct target_process *target, int64_t now)
{
	int error;

	target->key = watched->key;
	/* An unreadable process may be no Python. */
	watch->not_chosen += target->outcome != OUTCOME_UNREADABLE &&
			     !symbolizer__knows(watch->symbolizer, target);
	/* Until now the reason of the exclusion may have been another one. */
	if (watched->is_excluded)
		registry__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
	watched->is_undecided = false;
	if (!hold(watch, watched, target))
		return;
	error = target_map__set_aside(watch->map, watched->key);
	if (!error) {
		registry__look_after(watch, watched, CHECK_NS, now);
		registry__drop_ended(watch, watched);
	} else if (error == -E2BIG) {
		leave(watch, watched, error);
	} else {
		registry__drop(watch, watched);
	}
}

bool registry__lacks_gil(const struct watch *watch, const struct target_process *target)
{
	return watch->needs_gil && !layout_tells_holder(&target->runtime.layout);
}

/* Warns of what the profile will lack of TARGET, if TARGET is new. */
static void warn_of(const struct watch *watch, const struct target_process *target)
{
	if (symbolizer__knows(watch->symbolizer, target))
		return;
	if (target->outcome == OUTCOME_NOT_SUPPORTED)
		log__warning("process %d runs %s %s, which is not supported: its samples count as "
			     "not_supported",
			     target->process.pid,
			     target->runtime.kind ? target->runtime.kind->name : "Python",
			     target->runtime.version);
	else if (!target->outcome)
		target__warn_of_limits(target);
	if (!target->outcome && registry__lacks_gil(watch, target))
		log__warning("process %d runs Python %s, which %s: its samples count as "
			     "gil_untold",
			     target->process.pid, target->runtime.version,
			     target__lack_of_gil(&target->runtime));
}

/* The outcome of samples that came before TARGET was found.  A forked process may already have had
 * its parent's interpreter. */
static enum outcome waited_as(const struct target_process *target)
{
	if (target->outcome == OUTCOME_NOT_SUPPORTED)
		return OUTCOME_NOT_SUPPORTED;
	return target->runtime.begins && !target->parent ? OUTCOME_NO_INTERPRETER
							 : OUTCOME_NOT_KNOWN_YET;
}

/* Ends the exclusion of WATCHED's samples. */
static void include(struct watch *watch, struct watched *watched)
{
	if (!watched->is_excluded)
		return;
	watched->is_excluded = false;
	counts__include(watch->counts, watched->key.serial);
	/* The stacks that it had so far are not defined in the profile. */
	sampler__begin_epoch(watch->sampler);
}

void registry__take_python(struct watch *watch, struct watched *watched,
			   struct target_process *target, int64_t now)
{
	uint64_t waited;
	int error;

	if (!process_filter__wants(watch->filter, &target->identity)) {
		registry__set_aside(watch, watched, target, now);
		return;
	}
	include(watch, watched);
	error = registry__put(watch, watched, target, &waited);
	if (error)
		symbolizer__end_target(watch->symbolizer, target);
	/* It runs another program now, which BPF is about to report. */
	if (error == -ESTALE)
		return;
	if (error) {
		leave(watch, watched, error);
		return;
	}
	warn_of(watch, target);
	watch->found |= target->outcome != OUTCOME_UNREADABLE;
	registry__take_target(watch, watched, target);
	registry__add_waited(watch, target, waited_as(target), waited);
	registry__drop_ended(watch, watched);
}

/* Whether WATCHED has any sample. */
static bool has_run(const struct watch *watch, const struct watched *watched)
{
	if (watched->target)
		return symbolizer__has_sampled(watch->symbolizer, watched->target);
	return target_map__awaited(watch->map, watched->key) ||
	       target_map__samples(watch->map, watched->key);
}

/* Checks WATCHED again after twice the time.  Only before the first check of a forked process may
 * that be short. */
static void check_later(struct watch *watch, struct watched *watched, int64_t now)
{
	int64_t wait_ns = 2 * watched->look_wait_ns;

	if (!watched->is_undecided && wait_ns < CHECK_NS)
		wait_ns = CHECK_NS;
	registry__look_after(watch, watched, wait_ns < CHECK_NS_MAX ? wait_ns : CHECK_NS_MAX, now);
}

/* The filter still excludes WATCHED. */
static void keep_aside(struct watch *watch, struct watched *watched)
{
	if (watched->is_excluded)
		registry__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
	/* A file that it mapped may have made BPF await it. */
	watched->file_count = 0;
	target_map__set_aside(watch->map, watched->key);
	registry__drop_ended(watch, watched);
}

/* Whether WATCHED has run its program for long.  For a process from before the recording, only the
 * age of the process is known. */
static bool is_old(const struct watched *watched, int64_t now)
{
	int64_t started_s = watched->target->process.start_time / sysconf(_SC_CLK_TCK);
	bool was_reported = watched->key.serial >> USER_SERIAL_BITS;

	if (was_reported || !started_s)
		return now - watched->since_ns > YOUNG_NS;
	return clock_ns(CLOCK_BOOTTIME) - started_s * NS_PER_S > YOUNG_NS;
}

void registry__check_sampled(struct watch *watch, int64_t now)
{
	uint64_t serial;

	while (symbolizer__take_new(watch->symbolizer, &serial)) {
		struct watched *watched = registry__find(watch, serial);

		if (watched && watched->target && process_filter__is_empty(watch->filter))
			registry__look_after(watch, watched,
					     is_old(watched, now) ? CHECK_NS_MAX : CHECK_NS, now);
	}
}

/* Without a filter: reads the identity of WATCHED again if it has new samples. */
static void read_again(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = watched->target;
	bool settled = watched->look_wait_ns == CHECK_NS_MAX;

	if (symbolizer__take_news(watch->symbolizer, target))
		registry__identify(watch, target,
				   settled ? target__changeable(target) : IDENTIFY_FORKED);
	check_later(watch, watched, now);
}

void registry__check(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = watched__python(watched);
	bool is_known, is_wanted;

	if (process_filter__is_empty(watch->filter)) {
		read_again(watch, watched, now);
		return;
	}
	if (watched->is_undecided && watched->look_wait_ns < CHECK_NS && !has_run(watch, watched)) {
		check_later(watch, watched, now);
		return;
	}
	/* If it cannot be read, the last verdict stands. */
	is_known = target__identify(target, watch->map, IDENTIFY_ALL);
	is_wanted = process_filter__wants(watch->filter, &target->identity);
	watched->is_undecided &= !is_known;
	if (is_known && is_wanted && watched->unwanted) {
		watched->unwanted = NULL;
		watch->set_aside--;
		registry__take_python(watch, watched, target, now);
		return;
	}
	if (is_known && !is_wanted && watched->target) {
		/* The samples that it has stay in the profile. */
		sampler__leave(watch->sampler, watched->key.serial);
		watched->target = NULL;
		watch->some_ended = true;
		registry__set_aside(watch, watched, target, now);
		return;
	}
	if (is_known && watched->target)
		registry__describe(watch, target);
	check_later(watch, watched, now);
	if (watched->unwanted && !watched->is_undecided)
		keep_aside(watch, watched);
}
