// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "processes/process_list.h"
#include "system/cpus.h"
#include "system/open_files.h"
#include "target/deputy.h"
#include "target/elf_cache.h"
#include "watch/choice.h"
#include "watch/finding.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

/* After so long it is said that a program has not become a Python. */
#define START_PATIENCE_NS (10 * NS_PER_S)
#define EXEC_PATIENCE_NS  (200 * NS_PER_MS)

/* What came before everything was told was missed by at most so much of it. */
#define SCANS_MAX 64

/* How soon it is tried again, where it could not be seen what there is. */
#define SCAN_AGAIN_NS (100 * NS_PER_MS)

/* By then the kernel side has told what ended, where it knew it. */
#define TOLD_NS NS_PER_S

/* Has the kernel take note of the thread pointers of threads that it did not have to switch out
 * yet. */
void finding__note_threads(void)
{
	if (ARCHITECTURE.is_noted_late)
		cpus__visit();
}

/* WATCHED is known to be TARGET, of which WAITED samples came before. */
void finding__take_target(struct watch *watch, struct watched *watched,
			  struct target_process *target, uint64_t waited)
{
	/* One that was forked has used none by then; and it is of no use once some have ended. */
	double used_s =
		target->process.start_time && !watch->some_ended ? target__cpu_seconds(target) : 0;

	target->key = watched->key;
	target->halvings = target->next_halvings = watched->halvings;
	watched->target = target;
	choice__begin(watch, watched, now_ns());
	watch->cpu_before_s += used_s > 0 ? used_s : 0;
	if (!watch->first_pid && watch->following != FOLLOW_ALL)
		watch->first_pid = watched->pid;
	watch->waited += waited;
	symbolizer__add_target(watch->symbolizer, target);
	counts__add_waited(watch->counts, target, waited);
	finding__note_threads();
}

/* Nothing more comes of it. */
void finding__drop(struct watch *watch, struct watched *watched)
{
	struct target_process *target;

	watch->set_aside -= watched->unwanted != NULL;
	target = watched__remove(&watch->watched, watched);
	if (!target)
		return;
	watch->some_ended = true;
	symbolizer__end_target(watch->symbolizer, target);
}

void finding__remove(struct watch *watch, struct watched *watched)
{
	target_map__remove(watch->map, watched->key);
	finding__drop(watch, watched);
}

void finding__drop_ended(struct watch *watch, struct watched *watched)
{
	struct process process;
	int error = process__inspect(watched->pid, &process);

	if (error && error != -ESRCH)
		return;
	if (!error && !process.zombie &&
	    (!watched->target || process.start_time == watched->target->process.start_time))
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
}

void finding__confirm(struct watch *watch, struct watched *watched,
		      const struct process_record *record)
{
	uint64_t waited = 0;

	if (record->state != TARGET_WAITING)
		return;
	if (watched->target->outcome)
		target_map__refuse(watch->map, watched->key, watched->target->outcome, &waited);
	else
		target_map__put(watch->map, watched->key, &watched->target->runtime, &waited);
	waited -= waited < record->waiting ? waited : record->waiting;
	watch->waited += waited;
	counts__add_waited(watch->counts, watched->target, waited);
}

static void warn_of_other(struct watched *watched, bool started)
{
	watched->warned = true;
	if (started)
		log__warning("process %d has not begun to run a Python", watched->pid);
	else
		log__warning("process %d runs another program by now, which is no Python",
			     watched->pid);
}

/* It runs no Python, so far as it is known. */
static void take_other(struct watch *watch, struct watched *watched, bool changed, int64_t now)
{
	bool told = sampler__sees_mappings(watch->sampler);
	int64_t since_ns = now - watched->since_ns;
	bool started = watched->pid == watch->child;

	/* Else it may map one later on without a word. */
	if (told || since_ns > EXEC_PATIENCE_NS)
		answer(watch, watched, NULL);
	if (watch->following == FOLLOW_ALL && (told || since_ns > EXEC_PATIENCE_NS)) {
		finding__remove(watch, watched);
		return;
	}
	target_map__follow(watch->map, watched->key);
	if (told)
		watched__look_at(&watch->watched, watched, INT64_MAX);
	else
		watched__wait(&watch->watched, watched, changed, now);
	if (watch->following == FOLLOW_NONE && !watched->warned &&
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
		finding__note_crowd(watch);
	else
		log__warning("process %d cannot be sampled: %s", watched->pid, strerror(-error));
	finding__drop(watch, watched);
}

void finding__note_crowd(struct watch *watch)
{
	if (!watch->warned_of_crowd)
		log__warning("there are more processes than room for them, so that some are not "
			     "sampled until others have ended: --max-processes makes more");
	watch->warned_of_crowd = true;
	watch->full = true;
}

void finding__leave_out(struct watch *watch, struct watched *watched)
{
	if (watch->following == FOLLOW_ALL) {
		finding__remove(watch, watched);
	} else {
		target_map__follow(watch->map, watched->key);
		watched__look_at(&watch->watched, watched, INT64_MAX);
	}
}

/* It is TARGET, which is not walked: its samples come to OUTCOME.  Returns whether it is in the
 * profile. */
static bool take_unwalked(struct watch *watch, struct watched *watched,
			  struct target_process *target, enum outcome outcome)
{
	uint64_t waited;
	int error;

	if (!process_filter__wants(watch->filter, &target->identity)) {
		target__free(target);
		finding__leave_out(watch, watched);
		return false;
	}
	error = target_map__refuse(watch->map, watched->key, outcome, &waited);
	if (error) {
		target__free(target);
		leave(watch, watched, error);
		return false;
	}
	target->outcome = outcome;
	finding__take_target(watch, watched, target, waited);
	return true;
}

/* It runs a Python that is not supported. */
static void take_refused(struct watch *watch, struct watched *watched,
			 struct target_process *target)
{
	pid_t pid = watched->pid;

	if (pid == watch->child && watch->following == FOLLOW_NONE)
		watch->refused = target;
	else if (take_unwalked(watch, watched, target, OUTCOME_NOT_SUPPORTED))
		log__warning("process %d runs Python %s, which is not supported: its samples are "
			     "counted as such",
			     pid, target->runtime.version);
}

/* It cannot be told what it runs. */
static void take_unreadable(struct watch *watch, struct watched *watched)
{
	watch->unreadable++;
	watched->file_count = 0;
	if (take_unwalked(watch, watched, target__unknown(watched->pid), OUTCOME_UNREADABLE))
		finding__drop_ended(watch, watched);
}

/* It is not known what it runs; its samples are counted as such. */
static void name_unknown(struct watch *watch, struct watched *watched)
{
	uint64_t samples = target_map__awaited(watch->map, watched->key);
	struct target_process *target = samples ? target__unknown(watched->pid) : NULL;

	if (target && process_filter__wants(watch->filter, &target->identity))
		finding__take_target(watch, watched, target, samples);
	else
		target__free(target);
}

void finding__name_unknown(struct watch *watch)
{
	struct watched *watched, *next;

	HASH_ITER (hh, watch->watched.all, watched, next) {
		if (watched->target)
			continue;
		if (deputy__has_given_up(watched->pid))
			take_unreadable(watch, watched);
		else
			name_unknown(watch, watched);
	}
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
	choice__take_in(watch, watched);
	error = target_map__put(watch->map, watched->key, &target->runtime, &waited);

	if (error) {
		target__free(target);
		leave(watch, watched, error);
		return;
	}
	target__warn_of_limits(target);
	watch->found |= watched->pid == watch->child;
	finding__take_target(watch, watched, target, waited);
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

static void warn_of_few_files(struct watch *watch, int error)
{
	if (!watch->warned_of_files)
		open_files__warn(error);
	watch->warned_of_files = true;
}

/* It could not be looked at, because of ERROR, which may pass. */
static void put_off(struct watch *watch, struct watched *watched, int error, int64_t now)
{
	warn_of_few_files(watch, error);
	target_map__await(watch->map, watched->key);
	watched__wait(&watch->watched, watched, false, now);
}

/* What is kept open for later is worth less than what is needed now. */
static int look(struct watched *watched, struct target_process **target)
{
	int error = target__look(watched->pid, &watched->signature, target);

	if (open_files__ran_out(error) && elf_cache__close_kept())
		error = target__look(watched->pid, &watched->signature, target);
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
	int error = look(watched, &target);
	bool changed = watched->signature != before, was_gone = watched->is_gone;

	watched->is_gone = error == -ESRCH;
	if (error == -EAGAIN && !changed && watched->is_other)
		error = -ENOEXEC;
	watched->is_other = error == -ENOEXEC;
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
		take_refused(watch, watched, target);
		break;
	case -EAGAIN:
	case -EINPROGRESS:
		target_map__await(watch->map, watched->key);
		watched__wait(&watch->watched, watched, changed, now);
		break;
	case -ESRCH:
		take_gone(watch, watched, was_gone, now);
		break;
	case -EMFILE:
	case -ENFILE:
		put_off(watch, watched, error, now);
		break;
	case -ENOEXEC:
		take_other(watch, watched, changed, now);
		break;
	default:
		take_unreadable(watch, watched);
	}
}

void finding__look_at(struct watch *watch, struct watched *watched, int64_t now)
{
	if (watched->target || watched->unwanted)
		choice__ask(watch, watched, now);
	else
		look_what_runs(watch, watched, now);
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
		log__info("process %d is the one of this PID namespace; the one that is %d on the "
			  "host is process %d here",
			  pid, pid, namesake);
	*watched = watched__add(&watch->watched, key, pid, now);
	return 0;
}

/* Whether the kernel side follows process PID, and could not tell that. */
static bool is_untold(const struct watch *watch, pid_t pid)
{
	pid_t kernel_pid, namesake;

	return !sampler__find_kernel_pid(watch->sampler, pid, &kernel_pid, &namesake) &&
	       target_map__has_untold(watch->map, kernel_pid);
}

/* Whether process PID is to be looked at in a scan. */
static bool is_wanted(const struct watch *watch, pid_t pid, const struct process *process)
{
	if (process->kernel_thread || process->zombie)
		return false;
	return watch->following == FOLLOW_ALL ||
	       watched__of_pid(&watch->watched, process->parent) || is_untold(watch, pid);
}

/* Has it done again, in a while, what ERROR kept from seeing all there is. */
static void scan_later(struct watch *watch, int error, int64_t now)
{
	warn_of_few_files(watch, error);
	watch->scan_ns = now + SCAN_AGAIN_NS;
}

/* Begins to watch process PID where a scan is to find it.  0 with *WATCHED, or -errno. */
static int watch_wanted(struct watch *watch, pid_t pid, int64_t now, struct watched **watched)
{
	struct process process;
	int error;

	if (pid == getpid() || watched__of_pid(&watch->watched, pid))
		return -EEXIST;
	error = process__inspect(pid, &process);
	if (!error && !is_wanted(watch, pid, &process))
		error = -ESRCH;
	return error ? error : finding__watch(watch, pid, now, watched);
}

/* Looks at each process that is not known yet; returns how many are watched from now on. */
static size_t scan_once(struct watch *watch, int64_t now)
{
	size_t count, found = 0;
	pid_t *pids = process_list__read(&count);

	if (!pids && open_files__ran_out(-errno))
		scan_later(watch, -errno, now);
	for (size_t i = 0; i < count; i++) {
		struct watched *watched;
		int error = watch_wanted(watch, pids[i], now, &watched);

		if (open_files__ran_out(error))
			scan_later(watch, error, now);
		if (error)
			continue;
		/* What else the kernel side knows, it has told, or is about to. */
		if (!target_map__claim(watch->map, watched->key, &watched->halvings) &&
		    target_map__has(watch->map, watched->key.kernel_pid)) {
			finding__drop(watch, watched);
			continue;
		}
		finding__look_at(watch, watched, now);
		found += watched__of_pid(&watch->watched, pids[i]) != NULL;
	}
	free(pids);
	return found;
}

/* Finds what there is: a process that starts meanwhile is told of, unless its parent was not found
 * yet; so until there is nothing new. */
void finding__scan(struct watch *watch, int64_t now)
{
	int64_t before_ns = now_ns();
	size_t scans = 0;

	if (watch->following == FOLLOW_NONE)
		return;
	while (scan_once(watch, now) && ++scans < SCANS_MAX)
		;
	log__debug("all processes looked through in %lld ms: %zu are watched",
		   (now_ns() - before_ns) / NS_PER_MS, watched__count(&watch->watched));
}
