/* SPDX-License-Identifier: BSD-2-Clause */
/* A window to push and the sums of its samples, to check that encoding loses no sample. */
#ifndef PYBPFPROF_TESTS_PUSH_WINDOW_H
#define PYBPFPROF_TESTS_PUSH_WINDOW_H

#include <jansson.h>

#include "profile/plain_text.h"
#include "push/backend.h"
#include "services/labelled_window.h"
#include "synthetic.h"

#define WINDOW_START 1700000000000000000LL
#define WINDOW_END   (WINDOW_START + 10000000000LL)

struct push_window {
	struct profile *profile;
	json_t **labels;
	struct labelled_window window;
};

/* A process's service is its short name; without one, its command. */
static inline struct push_window push_window__of(struct profile *profile)
{
	struct push_window made = { .profile = profile };

	made.labels = xcalloc(profile->process_count, sizeof(*made.labels));
	for (size_t i = 0; i < profile->process_count; i++) {
		const struct profile_process *process = &profile->processes[i];
		const char *name = profile->strings[process->short_name ? process->short_name
									: process->command];

		made.labels[i] = json_pack("{s:s, s:s}", "service_name", name, "python_version",
					   profile->strings[process->python_version]);
	}
	made.window = (struct labelled_window){
		.start_unix_ns = WINDOW_START,
		.end_unix_ns = WINDOW_END,
		.profile = profile,
		.ledgers = profile->ledgers,
		.labels = made.labels,
	};
	return made;
}

static inline void push_window__free(struct push_window *made)
{
	for (size_t i = 0; i < made->profile->process_count; i++)
		json_decref(made->labels[i]);
	free(made->labels);
	profile__free(made->profile);
}

/* Adds COUNT to the sum of KEY.  Frees KEY. */
static inline void sums__count(json_t *sums, char *key, uint64_t count)
{
	json_int_t before = json_integer_value(json_object_get(sums, key));

	json_object_set_new(sums, key, json_integer(before + (json_int_t)count));
	free(key);
}

/* Returns KEY with one more frame.  Frees KEY. */
static inline char *sums__frame(char *key, const char *name, const char *file, int64_t first,
				int64_t line)
{
	char *longer = xasprintf("%s;%s (%s %lld:%lld)", key, name, file, (long long)first,
				 (long long)line);

	free(key);
	return longer;
}

/* Adds the frame of a location to KEY.  Its names are escaped, as they are when sent. */
static inline char *sums__location(char *key, const struct profile *profile, uint32_t index)
{
	const struct profile_location *location = &profile->locations[index];
	const struct profile_function *function = &profile->functions[location->function];
	char *name = plain_text__escape(profile->strings[function->name], SIZE_MAX);
	char *file = plain_text__escape(profile->strings[function->filename], SIZE_MAX);

	key = sums__frame(key, name, file, function->first_line, location->line);
	free(name);
	free(file);
	return key;
}

/* Sums the samples of PROFILE by service and frames.  LABELS has the labels of each process. */
static inline void sums__of_profile(json_t *sums, const struct profile *profile,
				    const json_t *const *labels)
{
	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		const struct profile_stack *stack = &profile->stacks[sample->stack];
		uint32_t process = profile->threads[sample->thread].process;
		char *key = push_label_value(json_object_get(labels[process], "service_name"));

		for (uint32_t j = 0; j < stack->depth; j++)
			key = sums__location(key, profile, stack->locations[j]);
		sums__count(sums, key, sample->amount.count);
	}
}

static inline json_t *sums__of_window(const struct push_window *made)
{
	json_t *sums = json_object();

	sums__of_profile(sums, made->profile, (const json_t *const *)made->labels);
	return sums;
}

#endif
