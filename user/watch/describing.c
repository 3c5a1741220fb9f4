// SPDX-License-Identifier: BSD-2-Clause
#include <unistd.h>

#include "base/now.h"
#include "watch/describing.h"

#define NS_PER_S 1000000000LL

/* A process older than this at its first sample is not expected to change. */
#define YOUNG_NS (10 * NS_PER_S)

void describing__read(struct watch *watch, struct target_process *target, enum identify what)
{
	if (target__identify(target, watch->map, what))
		registry__describe(watch, target);
}

void describing__take_title(struct watch *watch, struct target_process *target,
			    const struct process_record *record)
{
	bool cut = record->argument_bytes == ARGUMENT_BYTES_MAX;

	if (identity__retitle(&target->identity, record->arguments, record->argument_bytes, cut))
		registry__describe(watch, target);
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

void describing__look(struct watch *watch, int64_t now)
{
	struct watched *watched;
	bool settled;
	uint64_t serial;

	while (symbolizer__take_new(watch->symbolizer, &serial)) {
		watched = watched__find(&watch->watched, serial);
		if (watched && watched->target && process_filter__is_empty(watch->filter))
			watched__begin_to_read(&watch->watched, watched, is_old(watched, now), now);
	}
	while ((watched = watched__next_to_read(&watch->watched, now, &settled))) {
		struct target_process *target = watched->target;

		if (target && symbolizer__take_news(watch->symbolizer, target))
			describing__read(watch, target,
					 settled ? target__changeable(target) : IDENTIFY_FORKED);
	}
}

void describing__end(struct watch *watch)
{
	struct watched *watched, *next;

	HASH_ITER (hh, watch->watched.all, watched, next)
		if (watched->target && symbolizer__has_sampled(watch->symbolizer, watched->target))
			describing__read(watch, watched->target, IDENTIFY_FORKED);
}
