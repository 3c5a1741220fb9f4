// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "output/output.h"

/* Enough to tell nanoseconds apart in a weight of more than an hour. */
#define WEIGHT_DIGITS 15

struct writer {
	const struct profile *profile;
	const struct output_options *options;
	json_t **frames; /* location indices as JSON values; millions of stack entries share
			    them */
};

static json_t *frame_json(const struct writer *writer, uint32_t location)
{
	const struct profile *profile = writer->profile;
	const struct profile_location *place = &profile->locations[location];
	const struct profile_function *function = &profile->functions[place->function];
	string_id file = output__filename(writer->options, function);
	json_t *frame = json_pack("{s:s}", "name", profile->strings[function->name]);

	if (file)
		json_object_set_new(frame, "file", json_string(profile->strings[file]));
	if (place->line)
		json_object_set_new(frame, "line", json_integer(place->line));
	return frame;
}

static json_t *stack_json(const struct writer *writer, const struct profile_stack *stack)
{
	json_t *frames = json_array();

	for (uint32_t i = stack->depth; i > 0; i--)
		json_array_append(frames, writer->frames[stack->locations[i - 1]]);
	return frames;
}

/* "Process 12 "worker.py""; without the name if it is unknown. */
static char *entity_title(const struct profile *profile, const char *kind, uint32_t number,
			  string_id name)
{
	if (!name)
		return xasprintf("%s %u", kind, number);
	return xasprintf("%s %u \"%s\"", kind, number, profile->strings[name]);
}

static char *thread_title(const struct writer *writer, uint32_t index)
{
	const struct profile *profile = writer->profile;
	const struct profile_thread *thread = &profile->threads[index];
	const struct profile_process *process = &profile->processes[thread->process];
	char *title, *whose, *both;

	if (!process->pid)
		return xasprintf("Service \"%s\"", profile->strings[process->short_name]);
	title = entity_title(profile, "Thread", thread->tid, thread->name);
	if (!output__shows_processes(profile, writer->options))
		return title;
	whose = entity_title(profile, "Process", process->pid, process->short_name);
	both = xasprintf("%s %s", whose, title);
	free(whose);
	free(title);
	return both;
}

/* The title of the profile of SAMPLE's thread and event; the caller frees it. */
static char *sample_title(const struct writer *writer, const struct profile_sample *sample)
{
	char *title = thread_title(writer, sample->thread), *both;

	if (writer->profile->event_count == 1)
		return title;
	both = xasprintf("%s: %s", writer->profile->events[sample->event].name, title);
	free(title);
	return both;
}

/* The profile of one thread and event, from COUNT samples. */
static json_t *thread_json(const struct writer *writer, const struct profile_sample *const *samples,
			   size_t count)
{
	const struct profile_event *event = &writer->profile->events[samples[0]->event];
	bool time = strcmp(event->unit, "nanoseconds") == 0;
	double unit = time ? 1e9 : 1;
	char *title = sample_title(writer, samples[0]);
	json_t *stacks = json_array(), *weights = json_array(), *thread;
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++) {
		json_array_append_new(
			stacks, stack_json(writer, &writer->profile->stacks[samples[i]->stack]));
		json_array_append_new(weights, json_real(samples[i]->amount.value / unit));
		total += samples[i]->amount.value;
	}
	thread = json_pack("{s:s, s:s, s:s, s:i, s:f, s:o, s:o}", "type", "sampled", "name", title,
			   "unit", time ? "seconds" : "none", "startValue", 0, "endValue",
			   total / unit, "samples", stacks, "weights", weights);
	free(title);
	return thread;
}

static int compare_samples(const void *left, const void *right, void *context)
{
	const struct profile_sample *a = *(const struct profile_sample *const *)left;
	const struct profile_sample *b = *(const struct profile_sample *const *)right;
	const struct profile *profile = context;
	const struct profile_thread *a_thread = &profile->threads[a->thread];
	const struct profile_thread *b_thread = &profile->threads[b->thread];
	uint32_t a_pid = profile->processes[a_thread->process].pid;
	uint32_t b_pid = profile->processes[b_thread->process].pid;

	if (a->event != b->event)
		return a->event < b->event ? -1 : 1;
	if (a_pid != b_pid)
		return a_pid < b_pid ? -1 : 1;
	/* Two processes may have had the same pid, one after the other. */
	if (a_thread->process != b_thread->process)
		return a_thread->process < b_thread->process ? -1 : 1;
	if (a_thread->tid != b_thread->tid)
		return a_thread->tid < b_thread->tid ? -1 : 1;
	return (a > b) - (a < b);
}

static json_t *threads_json(const struct writer *writer)
{
	const struct profile *profile = writer->profile;
	size_t count = profile->sample_count, end;
	const struct profile_sample **order = xcalloc(count, sizeof(*order));
	json_t *threads = json_array();

	for (size_t i = 0; i < count; i++)
		order[i] = &profile->samples[i];
	qsort_r(order, count, sizeof(*order), compare_samples, (void *)profile);
	for (size_t begin = 0; begin < count; begin = end) {
		for (end = begin; end < count; end++)
			if (order[end]->thread != order[begin]->thread ||
			    order[end]->event != order[begin]->event)
				break;
		json_array_append_new(threads, thread_json(writer, order + begin, end - begin));
	}
	free(order);
	return threads;
}

static int write_speedscope(const struct profile *profile, const struct output_options *options,
			    FILE *file)
{
	struct writer writer = { .profile = profile, .options = options };
	json_t *frames = json_array(), *json;
	int error = 0;

	writer.frames = xcalloc(profile->location_count, sizeof(*writer.frames));
	for (size_t i = 0; i < profile->location_count; i++) {
		writer.frames[i] = json_integer(i);
		json_array_append_new(frames, frame_json(&writer, i));
	}
	json = json_pack("{s:s, s:s, s:s, s:{s:o}, s:o}", "$schema",
			 "https://www.speedscope.app/file-format-schema.json", "exporter",
			 "pybpfprof@" PYBPFPROF_VERSION, "name", options->title, "shared", "frames",
			 frames, "profiles", threads_json(&writer));
	if (!json || json_dumpf(json, file, JSON_COMPACT | JSON_REAL_PRECISION(WEIGHT_DIGITS)))
		error = ferror(file) ? 0 : -EINVAL;
	json_decref(json);
	for (size_t i = 0; i < profile->location_count; i++)
		json_decref(writer.frames[i]);
	free(writer.frames);
	return error;
}

const struct output_format output_speedscope = {
	.name = "speedscope",
	.description = "JSON for https://www.speedscope.app, one profile per thread",
	.use = "open it at https://www.speedscope.app",
	.suffix = "speedscope.json",
	.endings = { ".speedscope.json", ".json" },
	.tells_threads = true,
	.holds_events = true,
	.write = write_speedscope,
};
