// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "labelling.h"
#include "service.h"
#include "xalloc.h"

struct labelled {
	struct labelled_window window;
	json_t **labels;
	size_t count;
	/* Where something was dropped, else empty: the window's with what is kept. */
	struct profile kept;
	uint32_t *numbers;
	struct ledger ledger;
	uint64_t dropped;
};

/* The labels of the processes that have samples; whether all of these have. */
static bool find_labels(struct labelled *labelled, const struct profile *profile,
			const struct labelling *labelling)
{
	bool *asked = xcalloc(profile->process_count + 1, sizeof(*asked)), all = true;

	labelled->labels = xcalloc(profile->process_count + 1, sizeof(*labelled->labels));
	labelled->count = profile->process_count;
	for (size_t i = 0; i < profile->sample_count; i++) {
		uint32_t process = profile->threads[profile->samples[i].thread].process;

		if (asked[process])
			continue;
		asked[process] = true;
		labelled->labels[process] = labels__of(profile, process, labelling);
		all &= !!labelled->labels[process];
	}
	free(asked);
	return all;
}

/* What is kept is judged anew, by what its samples show; whose the lost ones were is not known. */
static void account(struct labelled *labelled, const struct ledger *all)
{
	struct ledger *ledger = &labelled->ledger;

	service__judge(&labelled->kept);
	*ledger = *all;
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		ledger->outcomes[outcome] = labelled->kept.ledger.outcomes[outcome];
	ledger->events = labelled->kept.ledger.events + all->lost;
}

static void keep(struct labelled *labelled, const struct window *window)
{
	const struct profile *profile = window->profile;
	struct profile *kept = &labelled->kept;

	*kept = *profile;
	kept->samples = xcalloc(profile->sample_count, sizeof(*kept->samples));
	labelled->numbers = xcalloc(profile->sample_count, sizeof(*labelled->numbers));
	kept->sample_count = 0;
	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_sample *sample = &profile->samples[i];

		if (!labelled->labels[profile->threads[sample->thread].process]) {
			labelled->dropped += sample->count;
			continue;
		}
		labelled->numbers[kept->sample_count] = i;
		kept->samples[kept->sample_count++] = *sample;
	}
	account(labelled, &window->ledger);
}

struct labelled *labelled__new(const struct window *window, const struct labelling *labelling)
{
	struct labelled *labelled = xcalloc(1, sizeof(*labelled));
	bool all = find_labels(labelled, window->profile, labelling);

	if (!all)
		keep(labelled, window);
	labelled->window = (struct labelled_window){
		.start_unix_ns = window->start_unix_ns,
		.end_unix_ns = window->end_unix_ns,
		.profile = all ? window->profile : &labelled->kept,
		.ledger = all ? &window->ledger : &labelled->ledger,
		.labels = labelled->labels,
		.numbers = labelled->numbers,
	};
	return labelled;
}

void labelled__free(struct labelled *labelled)
{
	for (size_t i = 0; i < labelled->count; i++)
		json_decref(labelled->labels[i]);
	free(labelled->labels);
	free(labelled->kept.samples);
	free(labelled->numbers);
	free(labelled);
}

const struct labelled_window *labelled__window(const struct labelled *labelled)
{
	return &labelled->window;
}

uint64_t labelled__dropped(const struct labelled *labelled)
{
	return labelled->dropped;
}
