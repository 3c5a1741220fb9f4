// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "watch/choice.h"

#define NS_PER_MS 1000000LL

#define AGAIN_NS     (100 * NS_PER_MS)
#define AGAIN_NS_MAX (10000 * NS_PER_MS)

/* What was forked may be another one soon. */
#define FORKED_NS (10 * NS_PER_MS)

/* What is not wanted takes at most this part of the places; the other ones of these are not
 * followed, and heard of again when they execute another program. */
#define UNWANTED_PART 2

static void ask_later(struct watch *watch, struct watched *watched, int64_t wait_ns, int64_t now)
{
	watched->look_wait_ns = wait_ns < AGAIN_NS_MAX ? wait_ns : AGAIN_NS_MAX;
	watched__look_at(&watch->watched, watched, now + watched->look_wait_ns);
}

void choice__begin(struct watch *watch, struct watched *watched, int64_t now)
{
	watched->is_undecided = watched->target->parent;
	if (process_filter__is_empty(watch->filter))
		watched__look_at(&watch->watched, watched, INT64_MAX);
	else
		ask_later(watch, watched, watched->is_undecided ? FORKED_NS : AGAIN_NS, now);
}

/* WATCHED is followed as TARGET, which is not wanted; returns whether there is a place for it. */
static bool hold(struct watch *watch, struct watched *watched, struct target_process *target)
{
	target->key = watched->key;
	watched->unwanted = target;
	watched->rest_ns = 0;
	watch->set_aside++;
	if (watch->following != FOLLOW_ALL || watch->set_aside <= watch->places / UNWANTED_PART)
		return true;
	finding__remove(watch, watched);
	return false;
}

const char *choice__command(const struct watched *parent)
{
	const struct target_process *target = parent ? parent->unwanted : NULL;

	if (target && target->identity.short_name)
		return target->identity.short_name;
	return parent ? parent->command : NULL;
}

void choice__await(struct watch *watch, struct watched *watched, const struct watched *parent,
		   int64_t now)
{
	const char *command = choice__command(parent);

	if (!hold(watch, watched, target__fork(parent->unwanted, watched->pid)))
		return;
	free(watched->command);
	watched->command = command ? xstrdup(command) : NULL;
	watched->is_undecided = true;
	ask_later(watch, watched, FORKED_NS, now);
}

void choice__set_aside(struct watch *watch, struct watched *watched, struct target_process *target,
		       int64_t now)
{
	int error;

	target->key = watched->key;
	/* Nobody knows whether what cannot be read is a Python. */
	watch->not_chosen += target->outcome != OUTCOME_UNREADABLE &&
			     !symbolizer__knows(watch->symbolizer, target);
	/* It may have been left out before that was known. */
	if (watched->is_excluded)
		choice__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
	watched->is_undecided = false;
	if (!hold(watch, watched, target))
		return;
	error = target_map__set_aside(watch->map, watched->key);
	if (!error) {
		ask_later(watch, watched, AGAIN_NS, now);
		/* Nobody tells the end of what was put there again after it. */
		finding__drop_ended(watch, watched);
		return;
	}
	if (error == -E2BIG)
		finding__note_no_room(watch, watched);
	finding__drop(watch, watched);
}

void choice__exclude(struct watch *watch, struct watched *watched, enum exclusion why,
		     const char *command)
{
	counts__exclude(watch->counts, watched->key.serial, why, command);
	watched->is_excluded = true;
}

void choice__include(struct watch *watch, struct watched *watched)
{
	if (!watched->is_excluded)
		return;
	watched->is_excluded = false;
	counts__include(watch->counts, watched->key.serial);
	/* What was sampled of it stands for no stack of the profile. */
	sampler__begin_epoch(watch->sampler);
}

/* It cannot be told whether TARGET, which WATCHED runs, is wanted, WAITED samples and what was
 * taken. */
static void leave_unknown(struct watch *watch, struct watched *watched,
			  struct target_process *target, uint64_t waited, int64_t now)
{
	const char *command = target->identity.short_name;

	choice__exclude(watch, watched, EXCLUDED_UNKNOWN, command);
	counts__add_unknown(watch->counts, watched->key.serial, waited);
	/* For what it forks meanwhile. */
	free(watched->command);
	watched->command = command ? xstrdup(command) : NULL;
	target__free(target);
	/* Where it could only not be read just now. */
	watched__look_at(&watch->watched, watched, now);
}

/* TARGET is what WATCHED runs, which is sampled already, as WAITED samples before that were not:
 * these came before its file was mapped. */
static void judge(struct watch *watch, struct watched *watched, struct target_process *target,
		  uint64_t waited, int64_t now)
{
	if (!process_filter__can_tell(watch->filter, &target->identity)) {
		leave_unknown(watch, watched, target, waited, now);
	} else if (!process_filter__wants(watch->filter, &target->identity)) {
		choice__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
		choice__set_aside(watch, watched, target, now);
	} else {
		watch->found = true;
		finding__take_target(watch, watched, target);
		finding__add_waited(watch, target, OUTCOME_NO_INTERPRETER, waited);
	}
}

/* What is known to be unwanted is sampled as if it were not. */
static void confirm(struct watch *watch, struct watched *watched)
{
	choice__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
	target_map__set_aside(watch->map, watched->key);
}

void choice__adopt(struct watch *watch, struct watched *watched,
		   const struct process_record *record)
{
	struct target_process *target;
	struct runtime runtime;

	if (watched->unwanted) {
		confirm(watch, watched);
		return;
	}
	/* The file is looked into again, and known by another number then. */
	if (!images__runtime(watch->images, record->image, record->bias, &runtime)) {
		watched__ask(&watch->watched, watched, record, now_ns());
		return;
	}
	target = target__adopt(record->pid, &runtime, record->arguments, record->argument_bytes);
	if (finding__has_namesake(watch, watched))
		target__disown(target, record->arguments, record->argument_bytes);
	identity__inherit(&target->identity, watched->ancestor);
	judge(watch, watched, target, record->waiting, now_ns());
}

/* What WATCHED runs is not wanted any more; what was sampled of it stays. */
static void give_up(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = watched->target;

	watched->target = NULL;
	watch->some_ended = true;
	choice__set_aside(watch, watched, target, now);
}

/* Whether anything of WATCHED was sampled. */
static bool has_run(const struct watch *watch, const struct watched *watched)
{
	if (watched->target)
		return symbolizer__has_sampled(watch->symbolizer, watched->target);
	return target_map__awaited(watch->map, watched->key) ||
	       target_map__samples(watch->map, watched->key);
}

/* WATCHED is what it was: it is asked again after twice as long; soon only until it was once. */
static void ask_again(struct watch *watch, struct watched *watched, int64_t now)
{
	int64_t wait_ns = 2 * watched->look_wait_ns;

	if (!watched->is_undecided && wait_ns < AGAIN_NS)
		wait_ns = AGAIN_NS;
	ask_later(watch, watched, wait_ns, now);
}

/* WATCHED is still not wanted. */
static void keep_aside(struct watch *watch, struct watched *watched)
{
	if (watched->is_excluded)
		choice__exclude(watch, watched, EXCLUDED_BY_FILTER, NULL);
	/* What it has mapped since may have made it one that is looked at. */
	watched->file_count = 0;
	target_map__set_aside(watch->map, watched->key);
	finding__drop_ended(watch, watched);
}

void choice__ask(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = watched->target ? watched->target : watched->unwanted;
	bool is_known, is_wanted;

	if (watched->is_undecided && watched->look_wait_ns < AGAIN_NS && !has_run(watch, watched)) {
		ask_again(watch, watched, now);
		return;
	}
	/* What cannot be read is what it was. */
	is_known = target__identify(target, watch->map, IDENTIFY_ALL);
	is_wanted = process_filter__wants(watch->filter, &target->identity);
	watched->is_undecided &= !is_known;
	if (is_known && is_wanted && watched->unwanted) {
		watched->unwanted = NULL;
		watch->set_aside--;
		finding__take_python(watch, watched, target, now);
		return;
	}
	if (is_known && !is_wanted && watched->target) {
		give_up(watch, watched, now);
		return;
	}
	if (is_known && watched->target && symbolizer__has_sampled(watch->symbolizer, target))
		symbolizer__describe(watch->symbolizer, target);
	ask_again(watch, watched, now);
	if (watched->unwanted && !watched->is_undecided)
		keep_aside(watch, watched);
}

void choice__explain_empty(const struct watch *watch)
{
	if (watch->not_chosen)
		log__warning("no samples: the filter excluded %zu Python processes, and any others "
			     "used no CPU in that time, or too little for the rate",
			     watch->not_chosen);
	else
		log__warning("no samples: no Python process used any CPU in that time, or too "
			     "little for the rate; raise it with -r");
}
