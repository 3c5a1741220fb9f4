// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "elf/elf_cache.h"
#include "reading/reader.h"
#include "sampling/target_open.h"
#include "system/open_files.h"
#include "watch/discovery.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

#define CHECK_NS_MAX (10 * NS_PER_S)

/* A program that is still no Python after this time is warned of. */
#define START_PATIENCE_NS (10 * NS_PER_S)
#define EXEC_PATIENCE_NS  (200 * NS_PER_MS)

/* Within this time BPF reports the end of each process that it knew. */
#define REPORT_NS NS_PER_S

/* Excluded Pythons take at most this part of BPF's map.  Others are not followed; BPF reports them
 * again when they execute another program. */
#define UNWANTED_PART 2

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

const char *discovery__command(const struct watched *parent)
{
	const struct target_process *target = parent ? parent->unwanted : NULL;

	if (target && target->identity.short_name)
		return target->identity.short_name;
	return parent ? parent->command : NULL;
}

static void set_command(struct watched *watched, const char *command)
{
	char *copy = command ? xstrdup(command) : NULL;

	free(watched->command);
	watched->command = copy;
}

void discovery__await(struct watch *watch, struct watched *watched, const struct watched *parent,
		      int64_t now)
{
	if (!hold(watch, watched, target__fork(parent->unwanted, watched->pid)))
		return;
	set_command(watched, discovery__command(parent));
	watched->is_undecided = true;
	watched__look_after(&watch->watched, watched, CHECK_FORKED_NS, now);
}

void discovery__exclude(struct watch *watch, struct watched *watched, enum exclusion why,
			const char *command)
{
	counts__exclude(watch->counts, watched->key.serial, why, command);
	watched->is_excluded = true;
}

/* Follows WATCHED as TARGET, which it runs and the filter excludes. */
static void set_aside(struct watch *watch, struct watched *watched, struct target_process *target,
		      int64_t now)
{
	int error;

	target->key = watched->key;
	/* An unreadable process may be no Python. */
	watch->not_chosen += target->outcome != OUTCOME_UNREADABLE &&
			     !symbolizer__knows(watch->symbolizer, target);
	/* Until now the reason of the exclusion may have been another one. */
	if (watched->is_excluded)
		discovery__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
	watched->is_undecided = false;
	if (!hold(watch, watched, target))
		return;
	error = target_map__set_aside(watch->map, watched->key);
	if (!error) {
		watched__look_after(&watch->watched, watched, CHECK_NS, now);
		registry__drop_ended(watch, watched);
		return;
	}
	if (error == -E2BIG)
		registry__note_no_room(watch, watched);
	registry__drop(watch, watched);
}

/* BPF did not take WATCHED, because of ERROR. */
static void leave(struct watch *watch, struct watched *watched, int error)
{
	watched__look_at(&watch->watched, watched, INT64_MAX);
	/* It runs another program now, which BPF is about to report. */
	if (error == -ESTALE)
		return;
	if (error == -E2BIG)
		registry__note_no_room(watch, watched);
	else
		log__warning("process %d cannot be sampled: %s", watched->pid, strerror(-error));
	registry__drop(watch, watched);
}

/* Whether BPF cannot tell who holds TARGET's GIL, and has to: then each sample says so. */
static bool lacks_gil(const struct watch *watch, const struct target_process *target)
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
	if (!target->outcome && lacks_gil(watch, target))
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

/* WATCHED runs TARGET: a Python, or a process that is not walked and may be one.  Samples it if the
 * filter wants it. */
static void take_python(struct watch *watch, struct watched *watched, struct target_process *target,
			int64_t now)
{
	uint64_t waited;
	int error;

	if (!process_filter__wants(watch->filter, &target->identity)) {
		set_aside(watch, watched, target, now);
		return;
	}
	include(watch, watched);
	error = registry__put(watch, watched, target, &waited);
	if (error) {
		symbolizer__end_target(watch->symbolizer, target);
		leave(watch, watched, error);
		return;
	}
	warn_of(watch, target);
	watch->found |= target->outcome != OUTCOME_UNREADABLE;
	registry__take_target(watch, watched, target);
	registry__add_waited(watch, target, waited_as(target), waited);
	registry__drop_ended(watch, watched);
}

/* The filter cannot be applied to TARGET, which WATCHED runs.  WAITED samples and those that BPF
 * took count as unknown. */
static void leave_unknown(struct watch *watch, struct watched *watched,
			  struct target_process *target, uint64_t waited, int64_t now)
{
	const char *command = target->identity.short_name;

	discovery__exclude(watch, watched, EXCLUDED_UNKNOWN, command);
	counts__add_unknown(watch->counts, watched->key.serial, waited);
	/* For the processes that it forks until the next look. */
	set_command(watched, command);
	target__free(target);
	/* The failure may have been temporary. */
	watched__look_at(&watch->watched, watched, now);
}

void discovery__adopt(struct watch *watch, struct watched *watched,
		      const struct process_record *record)
{
	struct target_process *target;
	struct runtime runtime;
	int64_t now = now_ns();

	if (watched->unwanted) {
		discovery__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
		target_map__set_aside(watch->map, watched->key);
		return;
	}
	/* A forgotten file is read again, and gets another number. */
	if (!images__runtime(watch->images, record->image, record->bias, &runtime)) {
		watched__ask(&watch->watched, watched, record, now);
		return;
	}
	target = target__adopt(record->pid, &runtime, record->arguments, record->argument_bytes);
	if (registry__has_namesake(watch, watched))
		target__disown(target, record->arguments, record->argument_bytes);
	identity__inherit(&target->identity, watched->ancestor);
	if (!process_filter__can_tell(watch->filter, &target->identity)) {
		leave_unknown(watch, watched, target, record->waiting, now);
	} else if (!process_filter__wants(watch->filter, &target->identity)) {
		discovery__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
		set_aside(watch, watched, target, now);
	} else {
		watch->found = true;
		registry__take_target(watch, watched, target);
		/* The samples that waited came before the file was mapped. */
		registry__add_waited(watch, target, OUTCOME_NO_INTERPRETER, record->waiting);
	}
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
	watched__look_after(&watch->watched, watched,
			    wait_ns < CHECK_NS_MAX ? wait_ns : CHECK_NS_MAX, now);
}

/* The filter still excludes WATCHED. */
static void keep_aside(struct watch *watch, struct watched *watched)
{
	if (watched->is_excluded)
		discovery__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
	/* A file that it mapped may have made BPF await it. */
	watched->file_count = 0;
	target_map__set_aside(watch->map, watched->key);
	registry__drop_ended(watch, watched);
}

/* Applies the filter again to WATCHED, a Python. */
static void check(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = watched->target ? watched->target : watched->unwanted;
	bool is_known, is_wanted;

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
		take_python(watch, watched, target, now);
		return;
	}
	if (is_known && !is_wanted && watched->target) {
		/* The samples that it has stay in the profile. */
		watched->target = NULL;
		watch->some_ended = true;
		set_aside(watch, watched, target, now);
		return;
	}
	if (is_known && watched->target)
		registry__describe(watch, target);
	check_later(watch, watched, now);
	if (watched->unwanted && !watched->is_undecided)
		keep_aside(watch, watched);
}

/* Answers BPF's questions about WATCHED's files.  RUNTIME is what was found; NULL: no Python. */
static void answer(struct watch *watch, struct watched *watched, const struct runtime *runtime)
{
	for (size_t i = 0; i < watched->file_count; i++) {
		const struct asked_file *file = &watched->files[i];

		images__learn(watch->images, &file->key, file->start, file->began, runtime);
	}
	watched->file_count = 0;
	images__learn_mapped(watch->images, watched->pid, watched->mapped, watched->mapped_count,
			     runtime);
	watched->mapped_count = 0;
}

static void warn_of_other(struct watched *watched, bool started)
{
	watched->warned = true;
	if (started)
		log__warning("process %d has not started Python yet", watched->pid);
	else
		log__warning("process %d has exec'd a program that is not Python", watched->pid);
}

/* WATCHED runs no Python, as far as is known. */
static void take_other(struct watch *watch, struct watched *watched, bool changed, int64_t now)
{
	bool reported = sampler__sees_mappings(watch->sampler);
	int64_t since_ns = now - watched->since_ns;
	bool started = watched->pid == watch->child;
	/* If BPF does not report mappings, a Python may still be loaded. */
	bool settled = reported || since_ns > EXEC_PATIENCE_NS;
	bool needless = watch->following == FOLLOW_ALL && settled;

	if (settled)
		answer(watch, watched, NULL);
	if (needless && !watched->slow_ns) {
		registry__remove(watch, watched);
		return;
	}
	target_map__follow(watch->map, watched->key);
	if (needless)
		watched__be_done(&watch->watched, watched, now_ns());
	else if (reported)
		watched__look_at(&watch->watched, watched, INT64_MAX);
	else
		watched__wait(&watch->watched, watched, changed, now);
	if ((watch->following == FOLLOW_NONE || (started && !watch->found)) && !watched->warned &&
	    since_ns >= (started ? START_PATIENCE_NS : EXEC_PATIENCE_NS))
		warn_of_other(watched, started);
	registry__drop_ended(watch, watched);
}

/* Whether TARGET, which WATCHED runs and which is not profiled because of ERROR, ends the
 * recording. Then it is kept. */
static bool ends_recording(struct watch *watch, struct watched *watched,
			   struct target_process *target, int error)
{
	if (watched->pid != watch->child || !watch->needs_python)
		return false;
	watch->refused = target;
	watch->refusal = error;
	return true;
}

/* WATCHED runs TARGET, a Python that is not supported. */
static void take_refused(struct watch *watch, struct watched *watched,
			 struct target_process *target, int64_t now)
{
	if (ends_recording(watch, watched, target, -ENOTSUP))
		return;
	target->outcome = OUTCOME_NOT_SUPPORTED;
	take_python(watch, watched, target, now);
}

/* User space may not read WATCHED. */
static void take_unreadable(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = target__unknown(watched->pid);

	watch->unreadable++;
	watched->file_count = 0;
	target->outcome = OUTCOME_UNREADABLE;
	take_python(watch, watched, target, now);
}

/* Whether an unsupported Python, found by the look after SIGNATURE, may still be loading: then
 * another part of the file lies at the address of its data. */
static bool is_early(struct watched *watched, uint64_t signature, int64_t now)
{
	if (now - watched->since_ns >= EXEC_PATIENCE_NS)
		return false;
	watched->signature = signature;
	return true;
}

/* As target__look.  Cached files are closed if that is needed to open its files. */
static int look(struct watched *watched, struct target_process **target)
{
	int64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	int error = target__look(watched->pid, &watched->signature, target);

	if (open_files__ran_out(error) && elf_cache__close_kept())
		error = target__look(watched->pid, &watched->signature, target);
	watched__note_look(watched, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns, now_ns());
	return error;
}

/* WATCHED has ended; BEFORE: the last look found the same.  BPF is about to report the end, unless
 * user space put the process into BPF's map after it. */
static void take_gone(struct watch *watch, struct watched *watched, bool before, int64_t now)
{
	if (before) {
		watch->child_ends |= watched->pid == watch->child;
		registry__remove(watch, watched);
		return;
	}
	watched__look_at(&watch->watched, watched, now + REPORT_NS);
	if (!target_map__has(watch->map, watched->key.kernel_pid))
		registry__drop(watch, watched);
}

/* Finds what WATCHED runs. */
static void look_what_runs(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = NULL;
	uint64_t before = watched->signature;
	bool changed, was_gone = watched->is_gone;
	int error;

	/* If it executes another program during the look, BPF gives it another serial.  So the
	 * result is not taken for that program. */
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
	/* reader.c has warned of ENOMEM. */
	registry__lacks_files(watch, error);
	switch (error) {
	case 0:
		answer(watch, watched, &target->runtime);
		if (!lacks_gil(watch, target) || !ends_recording(watch, watched, target, -ENODATA))
			take_python(watch, watched, target, now);
		break;
	case -ENOTSUP:
		take_refused(watch, watched, target, now);
		break;
	case -EAGAIN:
	case -EINPROGRESS:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		watched__wait(&watch->watched, watched, changed, now);
		break;
	case -ESRCH:
		take_gone(watch, watched, was_gone, now);
		break;
	case -ENOEXEC:
		take_other(watch, watched, changed, now);
		break;
	default:
		take_unreadable(watch, watched, now);
	}
}

void discovery__look_at(struct watch *watch, struct watched *watched, int64_t now)
{
	if (watched->target || watched->unwanted)
		check(watch, watched, now);
	else if (watched->is_done)
		registry__remove(watch, watched);
	else
		look_what_runs(watch, watched, now);
}

void discovery__look_at_due(struct watch *watch, int64_t now)
{
	int64_t until_ns = now_ns() + LOOKS_SLICE_NS;
	struct watched *watched, *next;

	for (watched = watch->watched.due; watched; watched = next) {
		next = watched->next;
		if (now < watched->look_ns)
			continue;
		discovery__look_at(watch, watched, now);
		if (next && now_ns() >= until_ns) {
			watched__begin_with(&watch->watched, next);
			break;
		}
	}
}

/* Adds WATCHED, about which nothing is known, to the profile if it has samples. */
static void name_unknown(struct watch *watch, struct watched *watched)
{
	uint64_t samples = target_map__awaited(watch->map, watched->key);
	struct target_process *target = samples ? target__unknown(watched->pid) : NULL;

	if (!target || !process_filter__wants(watch->filter, &target->identity)) {
		target__free(target);
		return;
	}
	registry__take_target(watch, watched, target);
	registry__add_waited(watch, target, OUTCOME_NOT_KNOWN_YET, samples);
}

void discovery__name_unknown(struct watch *watch)
{
	struct watched *watched, *next;

	HASH_ITER (hh, watch->watched.all, watched, next) {
		if (watched->unwanted && watched->is_undecided)
			unknown_processes__add(&watch->unknown, watched->command,
					       target_map__awaited(watch->map, watched->key));
		if (watched->target || watched->unwanted)
			continue;
		if (reader__has_given_up(watched->pid))
			take_unreadable(watch, watched, now_ns());
		else
			name_unknown(watch, watched);
	}
}
