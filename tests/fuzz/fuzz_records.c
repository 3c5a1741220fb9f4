// SPDX-License-Identifier: BSD-2-Clause
/* The input: a layout, the address of the interpreters, how memory changes, BPF's records with a
 * length each, and the memory that they lead to.  All are processed to the end: names, a
 * profile, every format. */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "naming/symbolizer.h"
#include "output/output.h"
#include "processes/identity.h"
#include "sampling/slots.h"

#define PID	    0
#define RECORDS_MAX 16
#define PERIOD_NS   10000000LL
#define WRITE_FULL  0x80
#define CHOICES	    16

struct pipeline {
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct bucket *buckets;
};

static void learn(void *context, const struct code_record *record, size_t size)
{
	struct pipeline *pipeline = context;

	symbolizer__learn(pipeline->symbolizer, record, size);
}

static uint64_t define(void *context, const struct definition *definition)
{
	struct pipeline *pipeline = context;
	struct slot *slot = &pipeline->buckets[definition->slot / SLOTS_PER_BUCKET]
				     .slots[definition->slot % SLOTS_PER_BUCKET];
	uint32_t thread, stack;

	slot->hash = definition->hash;
	slot->amount = definition->base;
	slot->amount.count++;
	slot->defined = definition->base.count + 1;
	if (!symbolizer__define(pipeline->symbolizer, definition, &thread, &stack))
		return UINT64_MAX;
	return (uint64_t)thread << 32 | stack;
}

static void count(void *context, uint64_t name, uint32_t event, struct amount amount,
		  enum outcome outcome, bool old)
{
	struct pipeline *pipeline = context;

	(void)old;
	(void)event;
	if (name == UINT64_MAX)
		return;
	pipeline->profile->ledgers[0].outcomes[outcome] += amount.count;
	profile__add(pipeline->profile, name >> 32, name, 0, amount);
}

/* Reads the command line of a process that has ended: nothing else is known of it. */
static void note(void *watcher, const struct process_record *record)
{
	struct identity identity = { 0 };

	(void)watcher;
	identity__take_words(record->arguments, record->argument_bytes, &identity);
	CHECK(!identity.short_name || *identity.short_name);
	identity__free(&identity);
}

static void identify(void *context, const struct target_process *target,
		     enum identification identification)
{
	(void)context;
	(void)target;
	(void)identification;
}

struct record {
	void *bytes;
	size_t size;
};

/* Takes records until an empty one.  Each is copied, so the sanitizers notice reads beyond its
 * end. */
static int take_records(struct input *input, struct record *records)
{
	int taken = 0;
	size_t size;

	while (taken < RECORDS_MAX && (size = input__number(input, 2))) {
		size = size < input->left ? size : input->left;
		records[taken] = (struct record){ malloc(size), size };
		input__take(input, records[taken++].bytes, size);
	}
	return taken;
}

static void go_through(struct pipeline *pipeline, const struct record *records, int record_count)
{
	const struct sampler_sink sink = {
		.note = note,
		.learn = learn,
		.define = define,
		.count = count,
		.context = pipeline,
	};
	struct slots *slots = slots__new(&sink, pipeline->buckets, 1);

	for (int i = 0; i < record_count; i++) {
		slots__take(slots, records[i].bytes, records[i].size);
		symbolizer__read_names(pipeline->symbolizer, i * PERIOD_NS);
		symbolizer__check(pipeline->symbolizer, identify, NULL);
	}
	slots__harvest(slots);
	slots__undefined(slots, 0);
	slots__free(slots);
}

/* Mostly writes the fastest format. */
static void write_profile(const struct profile *profile, unsigned int choice)
{
	static const struct output_format *const formats[] = { &output_html, &output_pprof,
							       &output_speedscope };
	const struct output_format *format = &output_folded;
	bool full = choice & WRITE_FULL;
	const struct output_options shown = { full, full, full, "fuzz", NULL };
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	if (choice % CHOICES < sizeof(formats) / sizeof(formats[0]))
		format = formats[choice % CHOICES];
	CHECK(!format->write(profile, &shown, file));
	fclose(file);
	free(text);
	free(ledger__summary(profile->ledgers));
}

static void profile_all(struct target_process *target, const struct record *records,
			int record_count, unsigned int format)
{
	const struct symbolizer_options naming = { 0 };
	struct profile *profile = profile__new();
	struct pipeline pipeline = { profile, symbolizer__new(profile, &naming),
				     calloc(STACK_BUCKETS, sizeof(struct bucket)) };

	symbolizer__add_target(pipeline.symbolizer, target);
	go_through(&pipeline, records, record_count);
	write_profile(profile, format);
	free(pipeline.buckets);
	symbolizer__free(pipeline.symbolizer);
	profile__free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct target_process target = { .process.pid = PID };
	struct input input = { bytes, size };
	struct record records[RECORDS_MAX];
	unsigned int changes, format;
	int record_count;

	if (!input__take_offsets(&input, &target.runtime.offsets) ||
	    offsets__layout(&target.runtime.offsets, &target.runtime.layout))
		return 0;
	target.runtime.interpreters = input__number(&input, 2);
	changes = input__number(&input, 1);
	format = input__number(&input, 1);
	record_count = take_records(&input, records);
	memory__set(input.next, input.left, changes);
	profile_all(&target, records, record_count, format);
	while (record_count--)
		free(records[record_count].bytes);
	return 0;
}
