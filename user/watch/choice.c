// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "watch/choice.h"

#define NS_PER_MS 1000000LL

#define AGAIN_NS     (100 * NS_PER_MS)
#define AGAIN_NS_MAX (10000 * NS_PER_MS)

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
	if (process_filter__is_empty(watch->filter))
		watched__look_at(&watch->watched, watched, INT64_MAX);
	else
		ask_later(watch, watched, AGAIN_NS, now);
}

void choice__set_aside(struct watch *watch, struct watched *watched, struct target_process *target,
		       int64_t now)
{
	int error;

	target->key = watched->key;
	watched->unwanted = target;
	watch->set_aside++;
	if (watch->following == FOLLOW_ALL && watch->set_aside > watch->places / UNWANTED_PART) {
		finding__remove(watch, watched);
		return;
	}
	error = target_map__follow(watch->map, watched->key);
	if (!error) {
		ask_later(watch, watched, AGAIN_NS, now);
		/* Nobody tells the end of what was put there again after it. */
		finding__drop_ended(watch, watched);
		return;
	}
	if (error == -E2BIG)
		finding__note_crowd(watch);
	finding__drop(watch, watched);
}

void choice__leave_out(struct watch *watch, struct watched *watched, enum leaving why)
{
	counts__leave_out(watch->counts, watched->key.serial, why);
	watched->is_left_out = true;
}

void choice__take_in(struct watch *watch, struct watched *watched)
{
	if (!watched->is_left_out)
		return;
	watched->is_left_out = false;
	counts__take_in(watch->counts, watched->key.serial);
	/* What was sampled of it stands for no stack of the profile. */
	sampler__begin_epoch(watch->sampler);
}

void choice__judge(struct watch *watch, struct watched *watched, struct target_process *target,
		   uint64_t waited, int64_t now)
{
	if (!process_filter__can_tell(watch->filter, &target->identity)) {
		unknown_processes__add(&watch->unknown, target->identity.short_name, waited);
		choice__leave_out(watch, watched, LEFT_UNKNOWN);
		target__free(target);
		/* Where it could only not be read just now. */
		watched__look_at(&watch->watched, watched, now);
	} else if (!process_filter__wants(watch->filter, &target->identity)) {
		choice__leave_out(watch, watched, LEFT_UNWANTED);
		choice__set_aside(watch, watched, target, now);
	} else {
		finding__take_target(watch, watched, target, waited);
	}
}

void choice__confirm(struct watch *watch, struct watched *watched)
{
	choice__leave_out(watch, watched, LEFT_UNWANTED);
	target_map__follow(watch->map, watched->key);
}

/* What WATCHED runs is not wanted any more; what was sampled of it stays. */
static void give_up(struct watch *watch, struct watched *watched)
{
	target_map__follow(watch->map, watched->key);
	watched__look_at(&watch->watched, watched, INT64_MAX);
	symbolizer__end_target(watch->symbolizer, watched->target);
	watched->target = NULL;
	watch->some_ended = true;
	finding__drop_ended(watch, watched);
}

void choice__ask(struct watch *watch, struct watched *watched, int64_t now)
{
	struct target_process *target = watched->target ? watched->target : watched->unwanted;
	/* What cannot be read is what it was. */
	bool is_known = target__identify(target, IDENTIFY_ALL);
	bool is_wanted = process_filter__wants(watch->filter, &target->identity);

	if (is_known && is_wanted && watched->unwanted) {
		watched->unwanted = NULL;
		watch->set_aside--;
		finding__take_python(watch, watched, target, now);
		return;
	}
	if (is_known && !is_wanted && watched->target) {
		give_up(watch, watched);
		return;
	}
	ask_later(watch, watched, 2 * watched->look_wait_ns, now);
	/* What it has mapped since may have made it one that is looked at. */
	if (watched->unwanted) {
		watched->file_count = 0;
		target_map__follow(watch->map, watched->key);
		finding__drop_ended(watch, watched);
	}
}
