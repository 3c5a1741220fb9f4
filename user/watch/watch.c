// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "processes/command_name.h"
#include "reading/reader.h"
#include "sampling/target_open.h"
#include "watch/discovery.h"
#include "watch/named.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* How soon after the end of a process those are tried again for which there was no room. */
#define CROWD_NS (500 * NS_PER_MS)

/* How often BPF's map is compared with the table. */
#define MEND_NS (10 * NS_PER_S)

/* The first wait between visits to all CPUs for thread pointers, and the longest. */
#define NOTE_NS	    (100 * NS_PER_MS)
#define NOTE_NS_MAX (10 * NS_PER_S)

struct watch *watch__new(enum following following, const struct process_filter *filter,
			 size_t places, bool needs_gil)
{
	struct watch *watch = xcalloc(1, sizeof(*watch));

	watch->following = following;
	watch->filter = filter;
	watch->places = places;
	watch->needs_gil = needs_gil;
	return watch;
}

void watch__free(struct watch *watch)
{
	if (!watch)
		return;
	free(watch->named);
	free(watch->before.list);
	registry__free(watch);
	free(watch->scan.pids);
	target__free(watch->refused);
	images__free(watch->images);
	thread_states__free(watch->thread_states);
	free(watch);
}

static void tell_thread_states(struct watch *watch, int64_t now)
{
	struct target_process **targets;
	size_t count;

	if (!thread_states__are_due(watch->thread_states, now))
		return;
	count = watch__targets(watch, &targets);
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
	watch->counts = counts;
	watch->images = images__new(watch->map);
	watch->thread_states = thread_states__new(sampler);
	watch->note_wait_ns = NOTE_NS;
	/* Reports begin before the first process is a target, so that none is missed. */
	error = sampler__follow(sampler);
	if (!error)
		error = named__sample(watch, now);
	if (watch->following == FOLLOW_NONE)
		watch->before = process_times__read();
	if (!error)
		discovery__begin(watch, now);
	tell_thread_states(watch, now);
	return error;
}

void watch__enter_targets(struct watch *watch)
{
	struct watched *watched, *next;

	HASH_ITER (hh, watch->all, watched, next)
		if (watched->target)
			sampler__enter(watch->sampler, watched->key.serial, watched->pid);
}

/* The short name that a worker gets which WATCHED is about to execute.  Until then a child has its
 * parent's name, even if the parent has ended.  WATCHED must be removed next.  The caller frees;
 * NULL: not known. */
static char *take_ancestor(struct watched *watched)
{
	const struct target_process *target = watched__python(watched);
	const struct identity *identity = target && !target->outcome ? &target->identity : NULL;
	char *name = watched->ancestor;

	if (identity && identity->short_name && (!identity->is_worker || identity->is_inherited))
		return xstrdup(identity->short_name);
	watched->ancestor = NULL;
	return name;
}

/* The process of RECORD.  Adds it if it is new; the program that it ran before has ended. */
static struct watched *watched_of(struct watch *watch, const struct process_record *record)
{
	struct target_key key = { .kernel_pid = record->kernel_pid, .serial = record->serial };
	struct watched *watched = registry__find(watch, record->serial), *before;
	int64_t slow_ns = 0, rest_ns = 0;
	char *ancestor = NULL;

	if (watched)
		return watched;
	/* The program before, or a process with that PID whose end was not reported.  User space
	 * may just have written it over the new one in BPF's map. */
	before = registry__of_pid(watch, record->pid);
	if (before && record->event == PROCESS_MAPPED) {
		slow_ns = before->slow_ns;
		rest_ns = before->rest_ns;
	}
	unknown_processes__add(&watch->unknown, before ? before->command : NULL, record->abandoned);
	if (before && record->event != PROCESS_FORKED && record->before == before->key.serial)
		ancestor = take_ancestor(before);
	if (before)
		registry__remove(watch, before);
	watched = registry__enter(watch, key, record->pid, now_ns());
	watched->slow_ns = slow_ns;
	watched->rest_ns = rest_ns;
	watched->ancestor = ancestor;
	return watched;
}

/* Takes from RECORD what WATCHED was started as. */
static void take_command(struct watched *watched, const struct process_record *record)
{
	free(watched->command);
	watched->command = command_name__of(record->arguments, record->argument_bytes, NULL);
}

/* Plans a look at CHILD.  It has the memory of PARENT, which is not known yet either.  NULL: PARENT
 * is not watched. */
static void look_at_child(struct watch *watch, struct watched *child, const struct watched *parent)
{
	if (!child->command)
		registry__set_command(child, registry__command(parent));
	registry__look_at(watch, child, now_ns());
}

/* Checks that BPF samples WATCHED, which has a target.  RECORD may be from before BPF learned that:
 * then BPF took it for unknown, or for no Python. */
static void confirm(struct watch *watch, struct watched *watched,
		    const struct process_record *record)
{
	uint64_t waited = 0;

	if (record->state != TARGET_WAITING && record->state < TARGET_OTHER)
		return;
	registry__put(watch, watched, watched->target, &waited);
	waited -= waited < record->waiting ? waited : record->waiting;
	registry__add_waited(watch, watched->target, OUTCOME_NOT_KNOWN_YET, waited);
}

/* Whether RECORD is of a process that is known to be no Python, and will be reported if it maps
 * one. */
static bool is_other(const struct watch *watch, const struct process_record *record)
{
	return record->state == TARGET_OTHER && sampler__sees_mappings(watch->sampler);
}

/* WATCHED is no Python.  It is followed for its children, unless all processes are. */
static void take_other(struct watch *watch, struct watched *watched)
{
	if (watch->following == FOLLOW_ALL) {
		registry__remove(watch, watched);
	} else {
		target_map__follow(watch->map, watched->key);
		registry__look_at(watch, watched, INT64_MAX);
	}
}

static void note_fork(struct watch *watch, const struct process_record *record)
{
	struct watched *child = watched_of(watch, record);
	const struct watched *parent = registry__find(watch, record->before);

	if (watched__python(child))
		return;
	/* BPF still sampled its parent at the fork, but that is no target any more. */
	if (record->state == TARGET_PYTHON && (!parent || !parent->target))
		registry__exclude(watch, child, EXCLUDED_UNKNOWN, registry__command(parent));
	if (parent && parent->target) {
		registry__take_target(watch, child, target__fork(parent->target, record->pid));
		confirm(watch, child, record);
	} else if (parent && parent->unwanted) {
		registry__await(watch, child, parent, now_ns());
	} else if (is_other(watch, record)) {
		take_other(watch, child);
	} else {
		look_at_child(watch, child, parent);
	}
}

static void note_exec(struct watch *watch, const struct process_record *record)
{
	struct watched *watched = watched_of(watch, record);
	struct target_process *target = watched->target;

	if (target) {
		/* It had no command line yet when its file was mapped. */
		bool has_namesake = registry__has_namesake(watch, watched);

		if (has_namesake)
			target__disown(target, record->arguments, record->argument_bytes);
		else
			identity__take_words(record->arguments, record->argument_bytes,
					     &target->identity);
		identity__inherit(&target->identity, watched->ancestor);
		if (!has_namesake)
			registry__identify(watch, target, IDENTIFY_ALL);
		confirm(watch, watched, record);
	} else if (record->state == TARGET_PYTHON) {
		discovery__adopt(watch, watched, record);
	} else if (record->state >= TARGET_OTHER && watched->unwanted) {
		/* The filter excluded it when its file was mapped; it has its command line now. */
		registry__look_at(watch, watched, now_ns());
	} else if (is_other(watch, record)) {
		take_other(watch, watched);
	} else {
		take_command(watched, record);
		discovery__ask(watch, watched, record);
	}
}

/* BPF does not report the exec of a program that is known to be no Python.  So this report is the
 * first with its arguments, except during the exec, when there are none yet. */
static void await_mapped(struct watch *watch, struct watched *watched,
			 const struct process_record *record)
{
	if (record->argument_bytes)
		take_command(watched, record);
	discovery__ask(watch, watched, record);
}

static void note_mapping(struct watch *watch, const struct process_record *record)
{
	struct watched *watched = watched_of(watch, record);

	if (watched->target)
		confirm(watch, watched, record);
	else if (record->state == TARGET_PYTHON)
		discovery__adopt(watch, watched, record);
	else if (record->state == TARGET_WAITING)
		await_mapped(watch, watched, record);
}

/*
 * User space cannot check what BPF has of a process and write it in one step.  If the process
 * executes a program in between, the program before is written over the new one.  BPF's report of
 * the new program comes after that and shows it.  From time to time all targets are checked, too.
 */

/* Whether the process of RECORD, not an end, was written over.  Then its samples are counted from
 * now on, and it is to be mended once the record is taken. */
static bool is_written_over(struct watch *watch, const struct process_record *record)
{
	struct target_key key = { .kernel_pid = record->kernel_pid, .serial = record->serial };
	struct watched *before = registry__of_pid(watch, record->pid);

	if (!before || before->key.serial == record->serial ||
	    !target_map__holds(watch->map, before->key))
		return false;
	registry__remove(watch, before);
	/* A process that BPF does not have would be taken for ended. */
	target_map__await(watch->map, key);
	return true;
}

/* Writes WATCHED to BPF's map again; may free it. */
static void mend(struct watch *watch, struct watched *watched)
{
	uint64_t waited = 0;

	if (watched->target) {
		registry__put(watch, watched, watched->target, &waited);
		target_map__shift_rate(watch->map, watched->key, watched->target->rate_shift);
		registry__add_waited(watch, watched->target, OUTCOME_NOT_KNOWN_YET, waited);
	} else if (watched->unwanted && !watched->is_undecided) {
		target_map__set_aside(watch->map, watched->key);
	} else {
		/* The look finds whether it has ended.  The report of its end needs its command. */
		target_map__await(watch->map, watched->key);
		registry__look_at(watch, watched, now_ns());
		return;
	}
	registry__drop_ended(watch, watched);
}

/* Takes TARGET's last title from RECORD, the report of its end. */
static void take_title(struct watch *watch, struct target_process *target,
		       const struct process_record *record)
{
	bool cut = record->argument_bytes == ARGUMENT_BYTES_MAX;

	if (identity__retitle(&target->identity, record->arguments, record->argument_bytes, cut))
		registry__describe(watch, target);
}

static void note_end(struct watch *watch, const struct process_record *record)
{
	struct watched *watched = registry__find(watch, record->serial);

	if (record->state == TARGET_WAITING || record->state == TARGET_LOADING ||
	    record->state == TARGET_UNTOLD)
		unknown_processes__add(&watch->unknown, watched ? watched->command : NULL,
				       record->waiting);
	/* It may end under the serial that was written over its own. */
	if (!watched)
		watched = registry__of_pid(watch, record->pid);
	if (!watched || (watched->key.serial != record->serial &&
			 target_map__has(watch->map, watched->key.kernel_pid))) {
		reader__forget(record->pid);
		return;
	}
	watch->child_ends |= watched->pid == watch->child;
	if (watch->full)
		discovery__want_scan(watch, now_ns() + CROWD_NS);
	watch->full = false;
	if (watched->target && watched->key.serial == record->serial)
		take_title(watch, watched->target, record);
	/* User space may have put it into BPF's map after its end. */
	registry__remove(watch, watched);
	reader__forget(record->pid);
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
	is_lost = record->event != PROCESS_ENDED && is_written_over(watch, record);
	notes[record->event](watch, record);
	watched = is_lost ? registry__find(watch, record->serial) : NULL;
	if (watched)
		mend(watch, watched);
}

/* Whether to ignore process PID, which is not watched. */
static bool is_foreign(const struct watch *watch, pid_t pid)
{
	return watch->following != FOLLOW_ALL || pid == getpid();
}

void watch__note_file(void *context, pid_t pid, const struct mapped_file *file)
{
	struct watch *watch = context;
	struct watched *watched = registry__of_pid(watch, pid);
	int64_t now = now_ns();

	if (watched ? watched__python(watched) != NULL : is_foreign(watch, pid))
		return;
	if (images__is_plain(watch->images, &file->part, now))
		return;
	if (watched && !watched->is_done) {
		discovery__map(watch, watched, file);
		return;
	}
	if (watched)
		target_map__remove(watch->map, watched->key);
	else if (registry__add(watch, pid, now, &watched) || !registry__claim(watch, watched))
		return;
	/* Its samples are counted until it is known what it runs. */
	target_map__await(watch->map, watched->key);
	discovery__map(watch, watched, file);
	registry__drop_ended(watch, watched);
}

bool watch__urges_file(void *context, pid_t pid, const struct mapped_file *file)
{
	const struct watch *watch = context;
	const struct watched *watched = registry__of_pid(watch, pid);

	if (watched ? watched__python(watched) && target_map__holds(watch->map, watched->key)
		    : is_foreign(watch, pid))
		return false;
	return images__is_python(watch->images, &file->part);
}

static void mend_all(struct watch *watch, int64_t now)
{
	struct watched *watched, *next;

	if (now < watch->mend_ns)
		return;
	if (watch->mend_ns)
		HASH_ITER (hh, watch->all, watched, next)
			if (watched->target && !target_map__samples(watch->map, watched->key))
				mend(watch, watched);
	watch->mend_ns = now + MEND_NS;
}

/* A thread whose pointer is not recorded yet looks like one that runs no Python. */
static void note_late_threads(struct watch *watch, int64_t now)
{
	uint64_t threadless = sampler__outcomes(watch->sampler, 0, OUTCOME_NO_PYTHON);

	if (now < watch->note_ns || threadless == watch->threadless)
		return;
	watch->threadless = threadless;
	registry__note_threads();
	watch->note_ns = now + watch->note_wait_ns;
	watch->note_wait_ns =
		2 * watch->note_wait_ns > NOTE_NS_MAX ? NOTE_NS_MAX : 2 * watch->note_wait_ns;
}

int64_t watch__due(const struct watch *watch)
{
	const int64_t due[] = { discovery__due(watch), named__due(watch),
				sampler__blocked_due(watch->sampler) };
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < sizeof(due) / sizeof(due[0]); i++)
		first = due[i] < first ? due[i] : first;
	return first;
}

void watch__look(struct watch *watch, int64_t now)
{
	uint64_t crowded = sampler__crowded(watch->sampler);

	registry__check_sampled(watch, now);
	discovery__work(watch, now);
	if (crowded != watch->crowded)
		registry__note_crowd(watch);
	watch->crowded = crowded;
	mend_all(watch, now);
	note_late_threads(watch, now);
	tell_thread_states(watch, now);
	sampler__walk_blocked(watch->sampler, now);
	named__look(watch, now);
}

bool watch__is_over(const struct watch *watch)
{
	/* A scan may still find processes that watched ones have started. */
	bool may_find = discovery__scan_due(watch) != INT64_MAX;

	return watch->refused || (!may_find && named__is_over(watch)) ||
	       (watch->following != FOLLOW_ALL && !may_find && !watch->all);
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
	for (watched = watch->all; watched; watched = watched->hh.next) {
		double now_s = watched->target ? target__cpu_seconds(watched->target) : 0;

		if (now_s < 0)
			return -1;
		used_s += now_s;
	}
	return used_s;
}

size_t watch__targets(const struct watch *watch, struct target_process ***targets)
{
	const struct watched *watched;
	size_t count = 0;

	*targets = xcalloc(HASH_COUNT(watch->all) + 1, sizeof(**targets));
	for (watched = watch->all; watched; watched = watched->hh.next)
		if (watched->target)
			(*targets)[count++] = watched->target;
	return count;
}

unsigned int watch__rate_shift(const struct watch *watch, uint64_t serial)
{
	const struct watched *watched = registry__find(watch, serial);

	return watched && watched->target ? watched->target->rate_shift : 0;
}

/* BPF may have removed a process that has just ended. */
static void shift_rate(struct watch *watch, struct watched *watched, unsigned int shift)
{
	if (watched->target && watched->target->rate_shift != shift &&
	    target_map__shift_rate(watch->map, watched->key, shift))
		watched->target->rate_shift = shift;
}

void watch__shift_rate(struct watch *watch, uint64_t serial, unsigned int shift)
{
	struct watched *watched = registry__find(watch, serial);

	if (watched)
		shift_rate(watch, watched, shift);
}

void watch__limit_rate_shift(struct watch *watch, unsigned int most)
{
	struct watched *watched;

	for (watched = watch->all; watched; watched = watched->hh.next)
		if (watched->target && watched->target->rate_shift > most)
			shift_rate(watch, watched, most);
}

void watch__end(struct watch *watch)
{
	struct watched *watched, *next;

	reader__give_up();
	/* The samples of a command before it was refused make no profile. */
	if (!watch->refused || watch->found)
		discovery__name_unknown(watch);
	HASH_ITER (hh, watch->all, watched, next)
		if (watched->target && symbolizer__has_sampled(watch->symbolizer, watched->target))
			registry__identify(watch, watched->target, IDENTIFY_FORKED);
}

void watch__account(const struct watch *watch, struct ledger *ledger)
{
	ledger->events += watch->waited;
	ledger->unknown = watch->unknown;
	ledger->unreadable_processes = watch->unreadable;
	ledger->untold = sampler__untold(watch->sampler);
	ledger->crowded = sampler__crowded(watch->sampler) + watch->scan.missed;
}

/* Warns why no Python of the machine has a sample. */
static void explain_none(const struct watch *watch)
{
	if (watch->not_chosen)
		log__warning("no samples: the filter excluded %zu Python processes, and any others "
			     "used no CPU in that time, or too little for the rate",
			     watch->not_chosen);
	else
		log__warning("no samples: no Python process used any CPU in that time, or too "
			     "little for the rate; raise it with -r");
}

enum exit_status watch__explain_empty(const struct watch *watch, const struct ledger *ledger)
{
	if (watch->refused)
		return target__explain(watch->first_pid, &watch->refused->runtime, watch->refusal);
	if (watch->command && !watch->found) {
		log__error("%s ran no Python, or none that lived long enough to be found%s",
			   watch->command[0],
			   watch->all ? "; what it left running has not started Python yet" : "");
		return STATUS_NOT_PYTHON;
	}
	if (ledger->without_gil)
		log__warning("no samples: no thread that ran held the GIL, or, with --gil-blame, "
			     "none was seen waiting for it (with musl none ever is)");
	else if (watch->warned_of_crowd)
		log__warning("no samples of the processes within the limit: raise it with "
			     "--max-processes");
	else if (watch->following == FOLLOW_ALL)
		explain_none(watch);
	else if (!registry__of_pid(watch, watch->first_pid))
		log__error("process %d ended before it was sampled: it used no CPU since %s, or "
			   "too little for the rate; raise it with -r",
			   watch->first_pid, watch->command ? "its start" : "sampling began");
	else
		named__explain_idle(watch, watch__cpu_seconds(watch));
	return STATUS_NO_SAMPLE;
}
