// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "agent/labelling.h"
#include "base/xalloc.h"
#include "services/service.h"

struct labelled {
	struct labelled_window window;
	/* If rules drop some samples: the others, and their ledgers. */
	struct profile profile;
	struct ledger ledgers[EVENTS_MAX];
	uint32_t *numbers;
	json_t **labels, **thread_labels;
	size_t process_count, thread_count;
	uint64_t dropped;
};

/* The labels of each process that has samples, or with BY_THREAD of each such thread. */
static json_t **find_labels(const struct profile *profile, const struct labelling *labelling,
			    bool by_thread)
{
	size_t count = by_thread ? profile->thread_count : profile->process_count;
	json_t **labels = xcalloc(count + 1, sizeof(*labels));
	bool *asked = xcalloc(count + 1, sizeof(*asked));

	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_thread *thread = &profile->threads[profile->samples[i].thread];
		const char *name = by_thread ? profile->strings[thread->name] : NULL;
		uint32_t index = by_thread ? profile->samples[i].thread : thread->process;

		if (!asked[index])
			labels[index] = labels__of(profile, thread->process, name, labelling);
		asked[index] = true;
	}
	free(asked);
	return labels;
}

static void free_labels(json_t **labels, size_t count)
{
	for (size_t i = 0; labels && i < count; i++)
		json_decref(labels[i]);
	free(labels);
}

static bool is_kept(const struct labelled *labelled, const struct profile_sample *sample)
{
	return labelled_window__labels(&labelled->window, sample->thread);
}

static bool is_whole(const struct labelled *labelled, const struct profile *profile)
{
	bool whole = true;

	for (size_t i = 0; i < profile->sample_count && whole; i++)
		whole = is_kept(labelled, &profile->samples[i]);
	return whole;
}

/* Keeps the samples of PROFILE that rules do not drop. */
static void keep_rest(struct labelled *labelled, const struct profile *profile)
{
	struct profile *kept = &labelled->profile;

	*kept = *profile;
	kept->samples = xcalloc(profile->sample_count + 1, sizeof(*kept->samples));
	kept->sample_count = 0;
	labelled->numbers = xcalloc(profile->sample_count + 1, sizeof(*labelled->numbers));
	for (size_t i = 0; i < profile->sample_count; i++) {
		if (!is_kept(labelled, &profile->samples[i])) {
			labelled->dropped += profile->samples[i].amount.count;
			continue;
		}
		labelled->numbers[kept->sample_count] = i;
		kept->samples[kept->sample_count++] = profile->samples[i];
	}
	labelled->window.profile = kept;
	labelled->window.numbers = labelled->numbers;
}

/* Makes the ledgers of the samples that are kept.  Lost samples have no labels, so all of them
 * count. */
static void account(struct labelled *labelled, const struct ledger *all)
{
	service__judge(&labelled->profile);
	for (uint32_t i = 0; i < labelled->profile.event_count; i++) {
		struct ledger *ledger = &labelled->ledgers[i];

		*ledger = all[i];
		memcpy(ledger->outcomes, labelled->profile.ledgers[i].outcomes,
		       sizeof(ledger->outcomes));
		ledger->events = ledger__samples(ledger) + ledger->lost;
	}
	labelled->window.ledgers = labelled->ledgers;
}

struct labelled *labelled__new(const struct window *window, const struct labelling *labelling)
{
	struct labelled *labelled = xcalloc(1, sizeof(*labelled));

	labelled->process_count = window->profile->process_count;
	labelled->labels = find_labels(window->profile, labelling, false);
	labelled->thread_count = window->profile->thread_count;
	if (labelling->with_thread)
		labelled->thread_labels = find_labels(window->profile, labelling, true);
	labelled->window = (struct labelled_window){
		.start_unix_ns = window->start_unix_ns,
		.end_unix_ns = window->end_unix_ns,
		.profile = window->profile,
		.ledgers = window->ledgers,
		.labels = labelled->labels,
		.thread_labels = labelled->thread_labels,
	};
	if (!is_whole(labelled, window->profile)) {
		keep_rest(labelled, window->profile);
		account(labelled, window->ledgers);
	}
	return labelled;
}

void labelled__free(struct labelled *labelled)
{
	if (labelled->numbers)
		free(labelled->profile.samples);
	free(labelled->numbers);
	free_labels(labelled->labels, labelled->process_count);
	free_labels(labelled->thread_labels, labelled->thread_count);
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
