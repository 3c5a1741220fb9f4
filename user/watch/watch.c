// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "processes/command_name.h"
#include "reading/deputy.h"
#include "reading/process.h"
#include "watch/choice.h"
#include "watch/describing.h"
#include "watch/finding.h"
#include "watch/launch.h"
#include "watch/scan.h"
#include "watch/written_over.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* How often all processes are asked what they map, where the kernel does not tell. */
#define ASK_NS (10 * NS_PER_S)

/* How soon after a process has ended it is looked whom there was no room for. */
#define CROWD_NS (500 * NS_PER_MS)

/* How often it is looked whether the kernel side has what it was told. */
#define MEND_NS (10 * NS_PER_S)

/* How often the kernel is made to note thread pointers anew, where that is needed. */
#define NOTE_NS	    (100 * NS_PER_MS)
#define NOTE_NS_MAX (10 * NS_PER_S)

struct watch *watch__new(enum following following, const struct process_filter *filter,
			 size_t places)
{
	struct watch *watch = xcalloc(1, sizeof(*watch));

	watch->following = following;
	watch->filter = filter;
	watch->places = places;
	return watch;
}

void watch__free(struct watch *watch)
{
	if (!watch)
		return;
	for (size_t i = 0; i < watch->named_count; i++)
		target__free(watch->named[i].target);
	free(watch->named);
	free(watch->before.list);
	watched__free(&watch->watched);
	scan__free(&watch->scan);
	target__free(watch->refused);
	images__free(watch->images);
	file_parts__free(&watch->plain_parts);
	file_parts__free(&watch->python_parts);
	thread_states__free(watch->thread_states);
	free(watch);
}

enum exit_status watch__open(struct watch *watch, const pid_t *pids, size_t count)
{
	enum exit_status status = STATUS_WRITTEN;
	size_t silent = 0;

	watch->named = xcalloc(count + 1, sizeof(*watch->named));
	for (size_t i = 0; i < count && !status; i++) {
		struct named *named = &watch->named[watch->named_count];
		bool is_silent;

		status = named__open(pids[i], watch->following == FOLLOW_NONE, &is_silent, named);
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

static void tell_thread_states(struct watch *watch, int64_t now)
{
	struct target_process **targets;
	size_t count;

	if (!thread_states__are_due(watch->thread_states, now))
		return;
	count = watched__targets(&watch->watched, &targets);
	thread_states__look(watch->thread_states, targets, count, now);
	free(targets);
}

int watch__begin(struct watch *watch, struct sampler *sampler, struct symbolizer *symbolizer,
		 struct counts *counts, int64_t now)
{
	int error;

	watch->sampler = sampler;
	watch->map = sampler__targets(sampler);
	watch->symbolizer = symbolizer;
	symbolizer__use_map(symbolizer, watch->map);
	watch->counts = counts;
	watch->images = images__new(watch->map);
	watch->thread_states = thread_states__new(sampler);
	watch->note_wait_ns = NOTE_NS;
	/* Before the first process is a target: nothing that becomes of it is to be missed. */
	error = sampler__follow(sampler);
	for (size_t i = 0; i < watch->named_count && !error; i++)
		error = named__sample(watch, &watch->named[i], now);
	if (watch->following == FOLLOW_NONE)
		watch->before = process_times__read();
	if (!error)
		scan__begin(watch, now);
	tell_thread_states(watch, now);
	return error;
}

/* The process of a RECORD, which is added where it is new; what ran in it before has ended. */
static struct watched *watched_of(struct watch *watch, const struct process_record *record)
{
	struct target_key key = { .kernel_pid = record->kernel_pid, .serial = record->serial };
	struct watched *watched = watched__find(&watch->watched, record->serial), *before;
	int64_t slow_ns = 0, rest_ns = 0;
	char *ancestor = NULL;

	if (watched)
		return watched;
	/* What ran in it before; or a process of that number, whose end was not told.  User space
	 * may have put it in the new one's place just now. */
	before = watched__of_pid(&watch->watched, record->pid);
	if (before && record->event == PROCESS_MAPPED) {
		slow_ns = before->slow_ns;
		rest_ns = before->rest_ns;
	}
	unknown_processes__add(&watch->unknown, before ? before->command : NULL, record->abandoned);
	if (before && record->event != PROCESS_FORKED && record->before == before->key.serial)
		ancestor = watched__take_ancestor(before);
	if (before)
		finding__remove(watch, before);
	watched = watched__add(&watch->watched, key, record->pid, now_ns());
	watched->halvings = record->halvings;
	watched->slow_ns = slow_ns;
	watched->rest_ns = rest_ns;
	watched->ancestor = ancestor;
	return watched;
}

/* RECORD tells what WATCHED was started as. */
static void take_command(struct watched *watched, const struct process_record *record)
{
	free(watched->command);
	watched->command = command_name__of(record->arguments, record->argument_bytes, NULL);
}

/* It has its PARENT's memory, of which it is not known yet what it is. */
static void look_at_child(struct watch *watch, struct watched *child, const struct watched *parent)
{
	if (!child->command && parent && parent->command)
		child->command = xstrdup(parent->command);
	watched__look_at(&watch->watched, child, now_ns());
}

static void note_fork(struct watch *watch, const struct process_record *record)
{
	struct watched *child = watched_of(watch, record);
	const struct watched *parent = watched__find(&watch->watched, record->before);

	if (child->target || child->unwanted)
		return;
	/* It was forked before its parent was not sampled any more. */
	if (record->state == TARGET_PYTHON && (!parent || !parent->target))
		choice__exclude(watch, child, EXCLUDED_UNKNOWN, choice__command(parent));
	if (parent && parent->target) {
		finding__take_target(watch, child, target__fork(parent->target, record->pid));
		finding__confirm(watch, child, record);
	} else if (parent && parent->unwanted) {
		choice__await(watch, child, parent, now_ns());
	} else if (record->state == TARGET_OTHER && sampler__sees_mappings(watch->sampler)) {
		finding__exclude(watch, child);
	} else {
		look_at_child(watch, child, parent);
	}
}

static void note_exec(struct watch *watch, const struct process_record *record)
{
	struct watched *watched = watched_of(watch, record);
	struct target_process *target = watched->target;

	if (target) {
		/* What was known of it when its file was mapped had no command line yet. */
		bool has_namesake = finding__has_namesake(watch, watched);

		if (has_namesake)
			target__disown(target, record->arguments, record->argument_bytes);
		else
			identity__take_words(record->arguments, record->argument_bytes,
					     &target->identity);
		identity__inherit(&target->identity, watched->ancestor);
		if (!has_namesake)
			describing__read(watch, target, IDENTIFY_ALL);
		finding__confirm(watch, watched, record);
	} else if (record->state == TARGET_PYTHON) {
		choice__adopt(watch, watched, record);
	} else if (record->state >= TARGET_OTHER && watched->unwanted) {
		/* That it is by us, since its file was mapped; its words are there by now. */
		watched__look_at(&watch->watched, watched, now_ns());
	} else if (record->state == TARGET_OTHER && sampler__sees_mappings(watch->sampler)) {
		finding__exclude(watch, watched);
	} else {
		take_command(watched, record);
		watched__ask(&watch->watched, watched, record, now_ns());
	}
}

/* Nobody has told what it was started as where its program is known to be no Python.  While it
 * executes that, its words are not there yet. */
static void await_mapped(struct watch *watch, struct watched *watched,
			 const struct process_record *record)
{
	if (record->argument_bytes)
		take_command(watched, record);
	watched__ask(&watch->watched, watched, record, now_ns());
}

static void note_mapping(struct watch *watch, const struct process_record *record)
{
	struct watched *watched = watched_of(watch, record);

	if (watched->target)
		finding__confirm(watch, watched, record);
	else if (record->state == TARGET_PYTHON)
		choice__adopt(watch, watched, record);
	else if (record->state == TARGET_WAITING)
		await_mapped(watch, watched, record);
}

static void note_end(struct watch *watch, const struct process_record *record)
{
	struct watched *watched = watched__find(&watch->watched, record->serial);

	if (record->state == TARGET_WAITING || record->state == TARGET_LOADING ||
	    record->state == TARGET_UNTOLD)
		unknown_processes__add(&watch->unknown, watched ? watched->command : NULL,
				       record->waiting);
	/* It may end as what was written over it. */
	if (!watched)
		watched = written_over__of_pid(watch, record->pid);
	if (!watched) {
		deputy__forget(record->pid);
		return;
	}
	watch->child_ends |= watched->pid == watch->child;
	if (watch->full)
		scan__want(&watch->scan, now_ns() + CROWD_NS);
	watch->full = false;
	if (watched->target && watched->key.serial == record->serial)
		describing__take_title(watch, watched->target, record);
	/* User space may have put it there again just now. */
	finding__remove(watch, watched);
	deputy__forget(record->pid);
}

void watch__note(void *context, const struct process_record *record)
{
	static void (*const notes[])(struct watch *, const struct process_record *) = {
		[PROCESS_FORKED] = note_fork,
		[PROCESS_EXECUTED] = note_exec,
		[PROCESS_MAPPED] = note_mapping,
		[PROCESS_ENDED] = note_end,
	};

	struct watch *watch = context;
	struct watched *watched;
	bool is_lost;

	if (record->event >= sizeof(notes) / sizeof(notes[0]))
		return;
	is_lost = record->event != PROCESS_ENDED && written_over__is(watch, record);
	notes[record->event](watch, record);
	watched = is_lost ? watched__find(&watch->watched, record->serial) : NULL;
	if (watched)
		written_over__mend(watch, watched);
}

void watch__note_file(void *watch, pid_t pid, const struct mapped_file *file)
{
	finding__note_file(watch, pid, file, now_ns());
}

bool watch__urges_file(void *watch, pid_t pid, const struct mapped_file *file)
{
	return finding__urges_file(watch, pid, file);
}

static void note_crowd(struct watch *watch)
{
	uint64_t crowded = sampler__crowded(watch->sampler);

	if (crowded != watch->crowded)
		finding__note_crowd(watch);
	watch->crowded = crowded;
}

/* What maps a Python late in its life tells nobody where the kernel does not. */
static void ask_all(struct watch *watch, int64_t now)
{
	if (watch->following == FOLLOW_NONE || sampler__sees_mappings(watch->sampler) ||
	    now < watch->ask_ns)
		return;
	if (watch->ask_ns)
		scan__want(&watch->scan, now);
	watch->ask_ns = now + ASK_NS;
}

static void mend_again(struct watch *watch, int64_t now)
{
	if (now < watch->mend_ns)
		return;
	if (watch->mend_ns)
		written_over__mend_all(watch);
	watch->mend_ns = now + MEND_NS;
}

/* A thread that was not noted yet is like one that runs no Python. */
static void note_late_threads(struct watch *watch, int64_t now)
{
	uint64_t threadless = sampler__outcomes(watch->sampler, 0, OUTCOME_NO_PYTHON);

	if (!ARCHITECTURE.is_noted_late || now < watch->note_ns || threadless == watch->threadless)
		return;
	watch->threadless = threadless;
	finding__note_threads();
	watch->note_ns = now + watch->note_wait_ns;
	watch->note_wait_ns =
		2 * watch->note_wait_ns > NOTE_NS_MAX ? NOTE_NS_MAX : 2 * watch->note_wait_ns;
}

int64_t watch__due(const struct watch *watch)
{
	int64_t looks_ns = watched__due(&watch->watched), scan_ns = scan__due(&watch->scan);
	int64_t rest_ns = launch__due(watch);

	looks_ns = looks_ns < scan_ns ? looks_ns : scan_ns;
	return looks_ns < rest_ns ? looks_ns : rest_ns;
}

void watch__look(struct watch *watch, int64_t now)
{
	finding__look_at_due(watch, now);
	note_crowd(watch);
	ask_all(watch, now);
	scan__look(watch, now);
	mend_again(watch, now);
	describing__look(watch, now);
	note_late_threads(watch, now);
	tell_thread_states(watch, now);
	launch__look(watch, now);
}

bool watch__is_over(const struct watch *watch)
{
	/* It may find what those have started that were watched. */
	bool may_find = scan__due(&watch->scan) != INT64_MAX;

	return watch->refused || (!may_find && launch__is_over(watch)) ||
	       (watch->following != FOLLOW_ALL && !may_find && !watched__count(&watch->watched));
}

pid_t watch__first_pid(const struct watch *watch)
{
	return watch->first_pid;
}

pid_t watch__child(const struct watch *watch)
{
	return watch->child;
}

double watch__cpu_seconds(const struct watch *watch)
{
	double used_s = -watch->cpu_before_s;
	const struct watched *watched;

	if (watch->some_ended)
		return -1;
	for (watched = watch->watched.all; watched; watched = watched->hh.next) {
		double now_s = watched->target ? target__cpu_seconds(watched->target) : 0;

		if (now_s < 0)
			return -1;
		used_s += now_s;
	}
	return used_s;
}

size_t watch__targets(const struct watch *watch, struct target_process ***targets)
{
	return watched__targets(&watch->watched, targets);
}

/* The kernel may have let go of a process that has just ended. */
static void set_halvings(struct watch *watch, struct watched *watched, unsigned int halvings)
{
	if (watched->target && watched->halvings != halvings &&
	    target_map__halve_rate(watch->map, watched->key, halvings))
		watched->halvings = watched->target->halvings = halvings;
}

void watch__halve_rate(struct watch *watch, uint64_t serial, unsigned int halvings)
{
	struct watched *watched = watched__find(&watch->watched, serial);

	if (watched)
		set_halvings(watch, watched, halvings);
}

void watch__limit_halvings(struct watch *watch, unsigned int most)
{
	struct watched *watched;

	for (watched = watch->watched.all; watched; watched = watched->hh.next)
		if (watched->halvings > most)
			set_halvings(watch, watched, most);
}

void watch__end(struct watch *watch)
{
	deputy__give_up();
	/* What was sampled of a command until it was refused makes no profile. */
	if (!watch->refused || watch->found)
		finding__name_unknown(watch);
	describing__end(watch);
}

void watch__account(const struct watch *watch, struct ledger *ledger)
{
	ledger->events += watch->waited;
	ledger->unknown = watch->unknown;
	ledger->unreadable_processes = watch->unreadable;
	ledger->untold = sampler__untold(watch->sampler);
	ledger->crowded = sampler__crowded(watch->sampler) + watch->scan.missed;
}

/* How many Python descendants of the named processes used CPU time meanwhile, and how much. */
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

/* What stops one of the named processes, *PID; NULL: nothing does. */
static const char *find_stopped(const struct watch *watch, pid_t *pid)
{
	const char *by = NULL;

	for (size_t i = 0; i < watch->named_count && !by; i++) {
		*pid = watch->named[i].pid;
		by = process__stopped_by(*pid);
	}
	return by;
}

/* What the named processes did instead of running. */
static void explain_idle(const struct watch *watch)
{
	double used_s = watch__cpu_seconds(watch), by_children_s;
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

enum exit_status watch__explain_empty(const struct watch *watch)
{
	if (watch->refused)
		return target__explain(watch->first_pid, &watch->refused->runtime, -ENOTSUP);
	if (watch->command && !watch->found) {
		log__error("%s ran no Python, or none that lived long enough to be found%s",
			   watch->command[0],
			   watched__count(&watch->watched)
				   ? "; what it left running has not started Python yet"
				   : "");
		return STATUS_NOT_PYTHON;
	}
	if (watch->warned_of_crowd)
		log__warning("no samples of the processes within the limit: raise it with "
			     "--max-processes");
	else if (watch->following == FOLLOW_ALL)
		choice__explain_empty(watch);
	else if (!watched__of_pid(&watch->watched, watch->first_pid))
		log__error("process %d ended before it was sampled: it used no CPU since %s, or "
			   "too little for the rate; raise it with -r",
			   watch->first_pid, watch->command ? "its start" : "sampling began");
	else
		explain_idle(watch);
	return STATUS_NO_SAMPLE;
}
