// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/labelling.h"
#include "agent/service_rates.h"
#include "base/xalloc.h"
#include "services/service.h"

/* What of a window was sampled at one rate: where it is not all, the window's profile with some of
 * the samples. */
struct part {
	struct labelled_window window;
	struct profile profile;
	uint32_t *numbers;
	struct ledger ledger;
};

struct labelled {
	struct part parts[SERVICE_HALVINGS_MAX]; /* the highest rate first */
	unsigned int count;			 /* one at least */
	struct labelled_window whole;		 /* as if it had been sampled at one rate */
	json_t **labels, **thread_labels;
	size_t process_count, thread_count;
	uint64_t dropped;
};

/* The labels of what has samples: of each thread where they are BY_THREAD, else of each process. */
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

/* Whether nothing of the window is dropped, nor was sampled at another rate than the rest. */
static bool is_whole(const struct labelled *labelled, const struct profile *profile)
{
	for (size_t i = 0; i < profile->sample_count; i++) {
		uint32_t thread = profile->samples[i].thread;

		if (!labelled_window__labels(&labelled->whole, thread) ||
		    profile->processes[profile->threads[thread].process].halvings)
			return false;
	}
	return true;
}

static unsigned int halvings_of(const struct profile *profile, uint32_t thread)
{
	return profile->processes[profile->threads[thread].process].halvings % SERVICE_HALVINGS_MAX;
}

/* Adds a part with the samples of those threads whose rate is halved so often. */
static void add_part(struct labelled *labelled, const struct window *window, unsigned int halvings)
{
	const struct profile *profile = window->profile;
	struct part *part = &labelled->parts[labelled->count++];
	struct profile *kept = &part->profile;

	*kept = *profile;
	kept->samples = xcalloc(profile->sample_count + 1, sizeof(*kept->samples));
	kept->sample_count = 0;
	part->numbers = xcalloc(profile->sample_count + 1, sizeof(*part->numbers));
	for (size_t i = 0; i < profile->sample_count; i++) {
		uint32_t thread = profile->samples[i].thread;

		if (!labelled_window__labels(&labelled->whole, thread) ||
		    halvings_of(profile, thread) != halvings)
			continue;
		part->numbers[kept->sample_count] = i;
		kept->samples[kept->sample_count++] = profile->samples[i];
	}
	part->ledger = window->ledger;
	part->ledger.rate_hz = ldexp(window->ledger.rate_hz, -(int)halvings);
}

/* Makes a part for each rate, without what was dropped. */
static void split(struct labelled *labelled, const struct window *window)
{
	const struct profile *profile = window->profile;
	bool used[SERVICE_HALVINGS_MAX] = { false };

	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_sample *sample = &profile->samples[i];

		if (labelled_window__labels(&labelled->whole, sample->thread))
			used[halvings_of(profile, sample->thread)] = true;
		else
			labelled->dropped += sample->count;
	}
	for (unsigned int halvings = 0; halvings < SERVICE_HALVINGS_MAX; halvings++)
		if (used[halvings])
			add_part(labelled, window, halvings);
	if (!labelled->count)
		add_part(labelled, window, 0);
}

/* Moves COUNT samples of OUTCOME from LEFT to LEDGER, as far as there are; how many. */
static uint64_t move(struct ledger *left, struct ledger *ledger, int outcome, uint64_t count)
{
	uint64_t moved = count < left->outcomes[outcome] ? count : left->outcomes[outcome];

	left->outcomes[outcome] -= moved;
	ledger->outcomes[outcome] += moved;
	return moved;
}

/* Gives LEDGER what its samples have SHOWN, out of what is LEFT of the window's.  They do not show
 * all that is known of them, as that a line is not: as many others make up for those. */
static void account_part(struct ledger *ledger, struct ledger *left, const struct ledger *shown)
{
	uint64_t missing = 0;

	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		missing += shown->outcomes[outcome] -
			   move(left, ledger, outcome, shown->outcomes[outcome]);
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		missing -= move(left, ledger, outcome, missing);
}

/* What is kept is judged anew, by what its samples show, where some was dropped; whose the lost
 * ones were is not known. */
static void account(struct labelled *labelled, const struct ledger *all)
{
	struct ledger left = *all;

	for (unsigned int i = 0; i < labelled->count; i++) {
		struct ledger *ledger = &labelled->parts[i].ledger;
		struct profile *profile = &labelled->parts[i].profile;

		service__judge(profile);
		memset(ledger->outcomes, 0, sizeof(ledger->outcomes));
		if (labelled->dropped)
			left = profile->ledger;
		account_part(ledger, &left, &profile->ledger);
		ledger->lost = i ? 0 : all->lost;
		ledger->events = ledger__samples(ledger) + ledger->lost;
	}
}

/* The whole window at one rate is as the recording has it. */
static void take_whole(struct labelled *labelled, const struct window *window)
{
	labelled->count = 1;
	labelled->parts[0].ledger = window->ledger;
}

/* Makes of the parts what sinks are given: one after the other. */
static void chain(struct labelled *labelled)
{
	for (unsigned int i = 0; i < labelled->count; i++) {
		struct part *part = &labelled->parts[i];

		part->window = labelled->whole;
		if (part->numbers)
			part->window.profile = &part->profile;
		part->window.ledger = &part->ledger;
		part->window.numbers = part->numbers;
		part->window.next = i + 1 < labelled->count ? &part[1].window : NULL;
		part->window.rate = i;
		part->window.rates = labelled->count;
	}
}

struct labelled *labelled__new(const struct window *window, const struct labelling *labelling)
{
	struct labelled *labelled = xcalloc(1, sizeof(*labelled));

	labelled->process_count = window->profile->process_count;
	labelled->labels = find_labels(window->profile, labelling, false);
	labelled->thread_count = window->profile->thread_count;
	if (labelling->with_thread)
		labelled->thread_labels = find_labels(window->profile, labelling, true);
	labelled->whole = (struct labelled_window){
		.start_unix_ns = window->start_unix_ns,
		.end_unix_ns = window->end_unix_ns,
		.profile = window->profile,
		.ledger = &window->ledger,
		.labels = labelled->labels,
		.thread_labels = labelled->thread_labels,
	};
	if (is_whole(labelled, window->profile)) {
		take_whole(labelled, window);
	} else {
		split(labelled, window);
		account(labelled, &window->ledger);
	}
	chain(labelled);
	return labelled;
}

void labelled__free(struct labelled *labelled)
{
	for (unsigned int i = 0; i < labelled->count; i++) {
		struct part *part = &labelled->parts[i];

		if (part->numbers)
			free(part->profile.samples);
		free(part->numbers);
	}
	free_labels(labelled->labels, labelled->process_count);
	free_labels(labelled->thread_labels, labelled->thread_count);
	free(labelled);
}

const struct labelled_window *labelled__window(const struct labelled *labelled)
{
	return &labelled->parts[0].window;
}

uint64_t labelled__dropped(const struct labelled *labelled)
{
	return labelled->dropped;
}
