// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "elf/elf_cache.h"
#include "reading/deputy.h"
#include "system/cpus.h"
#include "system/open_files.h"
#include "watch/choice.h"
#include "watch/finding.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* After so long it is said that a program has not become a Python. */
#define START_PATIENCE_NS (10 * NS_PER_S)
#define EXEC_PATIENCE_NS  (200 * NS_PER_MS)

/* By then the kernel side has told what ended, where it knew it. */
#define TOLD_NS NS_PER_S

/* Has the kernel take note of the thread pointers of threads that it did not have to switch out
 * yet. */
void finding__note_threads(void)
{
	if (ARCHITECTURE.is_noted_late)
		cpus__visit();
}

void finding__take_target(struct watch *watch, struct watched *watched,
			  struct target_process *target)
{
	/* One that was forked has used none by then; and it is of no use once some have ended. */
	double used_s =
		target->process.start_time && !watch->some_ended ? target__cpu_seconds(target) : 0;

	target->key = watched->key;
	target->halvings = watched->halvings;
	watched->target = target;
	watched->rest_ns = 0;
	choice__begin(watch, watched, now_ns());
	watch->cpu_before_s += used_s > 0 ? used_s : 0;
	if (!watch->first_pid && watch->following != FOLLOW_ALL)
		watch->first_pid = watched->pid;
	symbolizer__add_target(watch->symbolizer, target);
	/* It was wanted before, and perhaps somebody else's. */
	if (symbolizer__has_sampled(watch->symbolizer, target))
		symbolizer__describe(watch->symbolizer, target);
	finding__note_threads();
}

void finding__add_waited(struct watch *watch, const struct target_process *target,
			 enum outcome outcome, uint64_t waited)
{
	watch->waited += waited;
	counts__add_waited(watch->counts, target, outcome, waited);
}

/* Nothing more comes of it. */
void finding__drop(struct watch *watch, struct watched *watched)
{
	struct target_process *target;

	watch->set_aside -= watched->unwanted != NULL;
	watch->some_ended |= watched->target != NULL;
	target = watched__remove(&watch->watched, watched);
	if (target)
		symbolizer__end_target(watch->symbolizer, target);
}

void finding__remove(struct watch *watch, struct watched *watched)
{
	target_map__remove(watch->map, watched->key);
	finding__drop(watch, watched);
}

/* Whether NOW, which has TARGET's number, is the same process; of what was forked it is not known
 * when until that is asked for. */
static bool is_the_one(const struct target_process *target, const struct process *now)
{
	const struct process *known = &target->process;

	return known->start_time == now->start_time || (known->forked && !known->start_time);
}

void finding__drop_ended(struct watch *watch, struct watched *watched)
{
	struct process process;
	int error = process__inspect(watched->pid, &process);

	if (error && error != -ESRCH)
		return;
	if (!error && !process.zombie &&
	    (!watched->target || is_the_one(watched->target, &process)))
		return;
	finding__remove(watch, watched);
}

/* Answers the kernel side's questions, by what was found. */
static void answer(struct watch *watch, struct watched *watched, const struct runtime *runtime)
{
	for (size_t i = 0; i < watched->file_count; i++) {
		const struct asked_file *file = &watched->files[i];

		images__learn(watch->images, &file->key, file->start, file->began, runtime);
	}
	watched->file_count = 0;
	if (!runtime)
		file_parts__add_mapped(&watch->plain_parts, watched->pid, watched->mapped,
				       watched->mapped_count);
	for (size_t i = 0; runtime && i < watched->mapped_count; i++)
		if (watched->mapped[i].start == runtime->text.start)
			file_parts__add(&watch->python_parts, &watched->mapped[i].part);
	watched->mapped_count = 0;
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

int finding__put(struct watch *watch, struct watched *watched, struct target_process *target,
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

void finding__confirm(struct watch *watch, struct watched *watched,
		      const struct process_record *record)
{
	uint64_t waited = 0;

	if (record->state != TARGET_WAITING && record->state < TARGET_OTHER)
		return;
	finding__put(watch, watched, watched->target, &waited);
	waited -= waited < record->waiting ? waited : record->waiting;
	finding__add_waited(watch, watched->target, OUTCOME_NOT_KNOWN_YET, waited);
}

static void warn_of_other(struct watched *watched, bool started)
{
	watched->warned = true;
	if (started)
		log__warning("process %d has not started Python yet", watched->pid);
	else
		log__warning("process %d has exec'd a program that is not Python", watched->pid);
}

/* It runs no Python, so far as it is known. */
static void take_other(struct watch *watch, struct watched *watched, bool changed, int64_t now)
{
	bool told = sampler__sees_mappings(watch->sampler);
	int64_t since_ns = now - watched->since_ns;
	bool started = watched->pid == watch->child;
	/* Else it may map one later on without a word. */
	bool settled = told || since_ns > EXEC_PATIENCE_NS;
	bool needless = watch->following == FOLLOW_ALL && settled;

	if (settled)
		answer(watch, watched, NULL);
	if (needless && !watched->slow_ns) {
		finding__remove(watch, watched);
		return;
	}
	target_map__follow(watch->map, watched->key);
	if (needless)
		watched__be_done(&watch->watched, watched, now_ns());
	else if (told)
		watched__look_at(&watch->watched, watched, INT64_MAX);
	else
		watched__wait(&watch->watched, watched, changed, now);
	if ((watch->following == FOLLOW_NONE || (started && !watch->found)) && !watched->warned &&
	    since_ns >= (started ? START_PATIENCE_NS : EXEC_PATIENCE_NS))
		warn_of_other(watched, started);
	finding__drop_ended(watch, watched);
}

/* The kernel side did not take it, because of ERROR. */
static void leave(struct watch *watch, struct watched *watched, int error)
{
	watched__look_at(&watch->watched, watched, INT64_MAX);
	/* It is another program by now, of which the kernel side is about to tell. */
	if (error == -ESTALE)
		return;
	if (error == -E2BIG)
		finding__note_no_room(watch, watched);
	else
		log__warning("process %d cannot be sampled: %s", watched->pid, strerror(-error));
	finding__drop(watch, watched);
}

void finding__note_crowd(struct watch *watch)
{
	if (!watch->warned_of_crowd)
		log__warning("too many processes: some are not sampled until others end; raise the "
			     "limit with --max-processes");
	watch->warned_of_crowd = true;
	watch->full = true;
}

void finding__note_no_room(struct watch *watch, const struct watched *watched)
{
	finding__note_crowd(watch);
	if (watched->is_found)
		scan__note_no_room(watch);
}

void finding__exclude(struct watch *watch, struct watched *watched)
{
	if (watch->following == FOLLOW_ALL) {
		finding__remove(watch, watched);
	} else {
		target_map__follow(watch->map, watched->key);
		watched__look_at(&watch->watched, watched, INT64_MAX);
	}
}

/* It runs a Python that is not supported. */
static void take_refused(struct watch *watch, struct watched *watched,
			 struct target_process *target, int64_t now)
{
	if (watched->pid == watch->child && watch->needs_python) {
		watch->refused = target;
		return;
	}
	target->outcome = OUTCOME_NOT_SUPPORTED;
	finding__take_python(watch, watched, target, now);
}

/* It cannot be told what it runs. */
static void take_unreadable(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = target__unknown(watched->pid);

	watch->unreadable++;
	watched->file_count = 0;
	target->outcome = OUTCOME_UNREADABLE;
	finding__take_python(watch, watched, target, now);
}

/* It is not known what it runs; its samples are counted as such. */
static void name_unknown(struct watch *watch, struct watched *watched)
{
	uint64_t samples = target_map__awaited(watch->map, watched->key);
	struct target_process *target = samples ? target__unknown(watched->pid) : NULL;

	if (!target || !process_filter__wants(watch->filter, &target->identity)) {
		target__free(target);
		return;
	}
	finding__take_target(watch, watched, target);
	finding__add_waited(watch, target, OUTCOME_NOT_KNOWN_YET, samples);
}

void finding__name_unknown(struct watch *watch)
{
	struct watched *watched, *next;

	HASH_ITER (hh, watch->watched.all, watched, next) {
		if (watched->unwanted && watched->is_undecided)
			unknown_processes__add(&watch->unknown, watched->command,
					       target_map__awaited(watch->map, watched->key));
		if (watched->target || watched->unwanted)
			continue;
		if (deputy__has_given_up(watched->pid))
			take_unreadable(watch, watched, now_ns());
		else
			name_unknown(watch, watched);
	}
}

/* Says what the profile will not have of TARGET, where that is new. */
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
}

/* What samples of TARGET were that came before it was found, just now: where it has no interpreter,
 * it had none, and where it is not supported, it was not; but what was forked may have had its
 * parent's. */
static enum outcome waited_as(const struct target_process *target)
{
	if (target->outcome == OUTCOME_NOT_SUPPORTED)
		return OUTCOME_NOT_SUPPORTED;
	return target->runtime.begins && !target->parent ? OUTCOME_NO_INTERPRETER
							 : OUTCOME_NOT_KNOWN_YET;
}

void finding__take_python(struct watch *watch, struct watched *watched,
			  struct target_process *target, int64_t now)
{
	uint64_t waited;
	int error;

	if (!process_filter__wants(watch->filter, &target->identity)) {
		choice__set_aside(watch, watched, target, now);
		return;
	}
	choice__include(watch, watched);
	error = finding__put(watch, watched, target, &waited);
	if (error) {
		symbolizer__end_target(watch->symbolizer, target);
		leave(watch, watched, error);
		return;
	}
	warn_of(watch, target);
	watch->found |= target->outcome != OUTCOME_UNREADABLE;
	finding__take_target(watch, watched, target);
	finding__add_waited(watch, target, waited_as(target), waited);
	finding__drop_ended(watch, watched);
}

/* Whether what was found, at the look after SIGNATURE, may be for that it is being loaded: what
 * lies where its data will be is another part of the file then. */
static bool is_early(struct watched *watched, uint64_t signature, int64_t now)
{
	if (now - watched->since_ns >= EXEC_PATIENCE_NS)
		return false;
	watched->signature = signature;
	return true;
}

void finding__warn_of_few_files(struct watch *watch, int error)
{
	if (!watch->warned_of_files)
		open_files__warn(error);
	watch->warned_of_files = true;
}

/* It could not be looked at, because of ERROR, which may pass. */
static void put_off(struct watch *watch, struct watched *watched, int error, int64_t now)
{
	finding__warn_of_few_files(watch, error);
	watched__wait(&watch->watched, watched, false, now);
}

/* What is kept open for later is worth less than what is needed now. */
static int look(struct watched *watched, struct target_process **target)
{
	int64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int error = target__look(watched->pid, &watched->signature, target);

	if (open_files__ran_out(error) && elf_cache__close_kept())
		error = target__look(watched->pid, &watched->signature, target);
	watched__note_look(watched, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns, now_ns());
	return error;
}

/* It has ended, of which the kernel side is about to tell: but not where it was put there just
 * after that, for it was still in /proc then. */
static void take_gone(struct watch *watch, struct watched *watched, bool before, int64_t now)
{
	if (before) {
		watch->child_ends |= watched->pid == watch->child;
		finding__remove(watch, watched);
		return;
	}
	watched__look_at(&watch->watched, watched, now + TOLD_NS);
	if (!target_map__has(watch->map, watched->key.kernel_pid))
		finding__drop(watch, watched);
}

/* Looks what it runs. */
static void look_what_runs(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = NULL;
	uint64_t before = watched->signature;
	bool changed, was_gone = watched->is_gone;
	int error;

	/* So that, where it executes another program meanwhile, what was found is not taken for
	 * that. */
	target_map__await(watch->map, watched->key);
	error = look(watched, &target);
	changed = watched->signature != before;
	watched->is_gone = error == -ESRCH;
	if (error == -EAGAIN && !changed && watched->is_other)
		error = -ENOEXEC;
	watched->is_other = error == -ENOEXEC;
	if (target)
		identity__inherit(&target->identity, watched->ancestor);
	if (error == -ENOTSUP && is_early(watched, before, now)) {
		target__free(target);
		error = -EAGAIN;
	}
	switch (error) {
	case 0:
		answer(watch, watched, &target->runtime);
		finding__take_python(watch, watched, target, now);
		break;
	case -ENOTSUP:
		take_refused(watch, watched, target, now);
		break;
	case -EAGAIN:
	case -EINPROGRESS:
		watched__wait(&watch->watched, watched, changed, now);
		break;
	case -ESRCH:
		take_gone(watch, watched, was_gone, now);
		break;
	case -EMFILE:
	case -ENFILE:
		put_off(watch, watched, error, now);
		break;
	/* Which is said where it is a thread that is wanted. */
	case -ENOMEM:
		watched__wait(&watch->watched, watched, false, now);
		break;
	case -ENOEXEC:
		take_other(watch, watched, changed, now);
		break;
	default:
		take_unreadable(watch, watched, now);
	}
}

void finding__look_at(struct watch *watch, struct watched *watched, int64_t now)
{
	if (watched->target || watched->unwanted)
		choice__ask(watch, watched, now);
	else if (watched->is_done)
		finding__remove(watch, watched);
	else
		look_what_runs(watch, watched, now);
}

void finding__look_at_due(struct watch *watch, int64_t now)
{
	int64_t until_ns = now_ns() + LOOKS_SLICE_NS;
	struct watched *watched, *next;

	for (watched = watch->watched.due; watched; watched = next) {
		next = watched->next;
		if (now < watched->look_ns)
			continue;
		finding__look_at(watch, watched, now);
		if (next && now_ns() >= until_ns) {
			watched__begin_with(&watch->watched, next);
			break;
		}
	}
}

/* Begins to watch what the user or a scan has found. */
int finding__watch(struct watch *watch, pid_t pid, int64_t now, struct watched **watched)
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

bool finding__claim(struct watch *watch, struct watched *watched)
{
	if (target_map__claim(watch->map, watched->key, &watched->halvings) ||
	    !target_map__has(watch->map, watched->key.kernel_pid))
		return true;
	finding__drop(watch, watched);
	return false;
}

static bool is_known(const struct watched *watched)
{
	return watched->target || watched->unwanted;
}

void finding__note_file(struct watch *watch, pid_t pid, const struct mapped_file *file, int64_t now)
{
	struct watched *watched = watched__of_pid(&watch->watched, pid);

	if (watched ? is_known(watched) : watch->following != FOLLOW_ALL || pid == getpid())
		return;
	file_parts__age(&watch->plain_parts, now);
	if (file_parts__has(&watch->plain_parts, &file->part))
		return;
	if (watched && !watched->is_done) {
		watched__map(&watch->watched, watched, file, now);
		return;
	}
	if (watched)
		target_map__remove(watch->map, watched->key);
	else if (finding__watch(watch, pid, now, &watched) || !finding__claim(watch, watched))
		return;
	/* Its samples count, until it is known what they are. */
	target_map__await(watch->map, watched->key);
	watched__map(&watch->watched, watched, file, now);
	finding__drop_ended(watch, watched);
}

bool finding__urges_file(const struct watch *watch, pid_t pid, const struct mapped_file *file)
{
	const struct watched *watched = watched__of_pid(&watch->watched, pid);

	if (watched ? is_known(watched) && target_map__holds(watch->map, watched->key)
		    : watch->following != FOLLOW_ALL || pid == getpid())
		return false;
	return file_parts__has(&watch->python_parts, &file->part);
}

bool finding__has_namesake(const struct watch *watch, const struct watched *watched)
{
	struct process now;

	return !target_map__holds(watch->map, watched->key) &&
	       !process__inspect(watched->pid, &now) && !now.zombie;
}
