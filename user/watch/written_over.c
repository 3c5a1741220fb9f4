// SPDX-License-Identifier: BSD-2-Clause
#include "base/now.h"
#include "watch/written_over.h"

bool written_over__is(struct watch *watch, const struct process_record *record)
{
	struct target_key key = { .kernel_pid = record->kernel_pid, .serial = record->serial };
	struct watched *before = watched__of_pid(&watch->watched, record->pid);

	if (!before || before->key.serial == record->serial ||
	    !target_map__holds(watch->map, before->key))
		return false;
	finding__remove(watch, before);
	/* What is not there would be taken for what has ended. */
	target_map__await(watch->map, key);
	return true;
}

struct watched *written_over__of_pid(const struct watch *watch, pid_t pid)
{
	struct watched *watched = watched__of_pid(&watch->watched, pid);

	return watched && !target_map__has(watch->map, watched->key.kernel_pid) ? watched : NULL;
}

void written_over__mend(struct watch *watch, struct watched *watched)
{
	uint64_t waited = 0;

	if (watched->target) {
		finding__put(watch, watched, watched->target, &waited);
		finding__add_waited(watch, watched->target, OUTCOME_NOT_KNOWN_YET, waited);
	} else if (watched->unwanted && !watched->is_undecided) {
		target_map__set_aside(watch->map, watched->key);
	} else {
		target_map__await(watch->map, watched->key);
		watched__look_at(&watch->watched, watched, now_ns());
	}
	/* What was written may have had the rate of all. */
	if (watched->halvings)
		target_map__halve_rate(watch->map, watched->key, watched->halvings);
	finding__drop_ended(watch, watched);
}

void written_over__mend_all(struct watch *watch)
{
	struct watched *watched, *next;

	HASH_ITER (hh, watch->watched.all, watched, next)
		if (watched->target && !target_map__samples(watch->map, watched->key))
			written_over__mend(watch, watched);
}
