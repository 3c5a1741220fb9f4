// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/xalloc.h"
#include "naming/counts.h"
#include "naming/tally.h"

/* What stands for no stack of the profile. */
#define NO_NAME		 UINT64_MAX /* of no known process: never happens, and never a guess */
#define UNWANTED	 (UINT64_MAX - 1)
#define UNKNOWN		 ((uint64_t)UINT32_MAX << 32) /* and the process's number in left_out.h */
#define IS_STACK(name)	 ((name) < UNKNOWN)
#define IS_UNKNOWN(name) (!IS_STACK(name) && (name) < UNWANTED)

struct counts {
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct tally *tally;
	struct left_out *left_out;
	uint64_t taken_back[OUTCOME_COUNT]; /* of what is left out */
	uint64_t waited[OUTCOME_COUNT];	    /* that the kernel has counted apart */
	uint64_t unnamed;
};

struct counts *counts__new(struct profile *profile, struct symbolizer *symbolizer)
{
	struct counts *counts = xcalloc(1, sizeof(*counts));

	counts->profile = profile;
	counts->symbolizer = symbolizer;
	counts->tally = tally__new();
	counts->left_out = left_out__new();
	return counts;
}

void counts__free(struct counts *counts)
{
	if (!counts)
		return;
	tally__free(counts->tally);
	left_out__free(counts->left_out);
	free(counts);
}

static void learn_code(void *context, const struct code_record *record, size_t size)
{
	struct counts *counts = context;

	symbolizer__learn(counts->symbolizer, record, size);
}

/* What the sampler calls a stack of a thread. */
static uint64_t name_of(uint32_t thread, uint32_t stack)
{
	return (uint64_t)thread << 32 | stack;
}

void counts__leave_out(struct counts *counts, uint64_t serial, enum leaving why,
		       const char *command)
{
	left_out__add(counts->left_out, serial, why, command);
}

void counts__take_in(struct counts *counts, uint64_t serial)
{
	left_out__take_in(counts->left_out, serial);
}

void counts__add_unknown(struct counts *counts, uint64_t serial, uint64_t samples)
{
	left_out__count(counts->left_out, left_out__number(counts->left_out, serial), samples);
}

static uint64_t define_stack(void *context, const struct definition *definition)
{
	struct counts *counts = context;
	enum leaving why = left_out__find(counts->left_out, definition->serial);
	uint32_t thread, stack;

	if (why == LEFT_UNWANTED)
		return UNWANTED;
	if (why == LEFT_UNKNOWN)
		return UNKNOWN | left_out__number(counts->left_out, definition->serial);
	if (!symbolizer__define(counts->symbolizer, definition, &thread, &stack))
		return NO_NAME;
	return name_of(thread, stack);
}

static void count_stack(void *context, uint64_t name, uint64_t samples, enum outcome outcome)
{
	const struct tally_entry entry = { name, outcome, samples };
	struct counts *counts = context;

	if (name == NO_NAME)
		counts->unnamed += samples;
	else if (!IS_STACK(name))
		counts->taken_back[outcome] += samples;
	if (IS_UNKNOWN(name))
		left_out__count(counts->left_out, name, samples);
	if (!IS_STACK(name))
		return;
	symbolizer__see(counts->symbolizer, name >> 32, name, samples);
	tally__add(counts->tally, &entry);
}

void counts__add_waited(struct counts *counts, const struct target_process *target,
			enum outcome outcome, uint64_t samples)
{
	uint32_t thread, stack;

	if (!samples)
		return;
	thread = symbolizer__first_thread(counts->symbolizer, target);
	stack = symbolizer__reason(counts->symbolizer, outcome);
	counts->waited[outcome] += samples;
	counts->profile->ledger.outcomes[outcome] += samples;
	profile__add(counts->profile, thread, stack, samples);
}

struct sampler_sink counts__sink(struct counts *counts)
{
	return (struct sampler_sink){
		.learn = learn_code,
		.define = define_stack,
		.count = count_stack,
		.context = counts,
	};
}

static void identify_codes(void *context, const struct target_process *target,
			   enum identification identify)
{
	struct sampler *sampler = context;

	target_map__identify_codes(sampler__targets(sampler), target->key, identify,
				   target->versions_repeat);
}

static bool is_in_doubt(const struct counts *counts, const struct tally_entry *entry)
{
	return symbolizer__doubts(counts->symbolizer, entry->name >> 32, entry->name);
}

static bool take(void *context, const struct tally_entry *entry)
{
	struct counts *counts = context;
	enum outcome outcome = entry->outcome;
	uint32_t thread = entry->name >> 32, stack = entry->name;

	if (is_in_doubt(counts, entry)) {
		outcome = OUTCOME_CODE_REPLACED;
		stack = symbolizer__reason(counts->symbolizer, outcome);
	} else if ((outcome == OUTCOME_PYTHON || outcome == OUTCOME_LINE_UNKNOWN) &&
		   profile__lacks_names(counts->profile, stack)) {
		outcome = OUTCOME_NAME_UNKNOWN;
	}
	counts->profile->ledger.outcomes[outcome] += entry->samples;
	profile__add(counts->profile, thread, stack, entry->samples);
	return true;
}

static bool take_doubted(void *context, const struct tally_entry *entry)
{
	return is_in_doubt(context, entry) && take(context, entry);
}

void counts__settle(struct counts *counts, struct sampler *sampler)
{
	struct tally *checked = counts->tally;

	sampler__drain(sampler);
	sampler__harvest(sampler);
	counts->tally = tally__new();
	if (symbolizer__check(counts->symbolizer, identify_codes, sampler)) {
		sampler__begin_epoch(sampler);
		/* What came while it was checked was counted as what is in doubt now, or as what
		 * may have been replaced since it was looked at. */
		sampler__drain(sampler);
		sampler__harvest(sampler);
	}
	tally__settle(checked, take, counts);
	tally__free(checked);
	tally__settle(counts->tally, take_doubted, counts);
	symbolizer__settle(counts->symbolizer);
	left_out__settle(counts->left_out);
}

void counts__settle_all(struct counts *counts, struct sampler *sampler)
{
	counts__settle(counts, sampler);
	counts__settle(counts, sampler);
	left_out__end(counts->left_out);
}

static uint64_t keep_name(void *numbers, uint64_t name)
{
	struct profile_numbers *kept = numbers;

	if (IS_STACK(name)) {
		kept->threads[name >> 32] = PROFILE_KEPT;
		kept->stacks[(uint32_t)name] = PROFILE_KEPT;
	}
	return name;
}

static uint64_t renumber_name(void *numbers, uint64_t name)
{
	const struct profile_numbers *kept = numbers;

	return IS_STACK(name) ? name_of(kept->threads[name >> 32], kept->stacks[(uint32_t)name])
			      : name;
}

void counts__compact(struct counts *counts, struct sampler *sampler)
{
	struct profile_numbers numbers;

	profile_numbers__init(&numbers, counts->profile);
	sampler__age(sampler);
	sampler__rename(sampler, keep_name, &numbers);
	tally__rename(counts->tally, keep_name, &numbers);
	symbolizer__keep(counts->symbolizer, &numbers);
	profile__compact(counts->profile, &numbers);
	sampler__rename(sampler, renumber_name, &numbers);
	tally__rename(counts->tally, renumber_name, &numbers);
	symbolizer__renumber(counts->symbolizer, &numbers);
	profile_numbers__free(&numbers);
}

void counts__account(const struct counts *counts, struct ledger *ledger)
{
	ledger->lost += counts->unnamed;
	left_out__account(counts->left_out, &ledger->unknown);
	for (int i = 0; i < OUTCOME_COUNT; i++)
		ledger->events -= counts->taken_back[i];
}

bool counts__agree(const struct counts *counts, const struct sampler *sampler)
{
	const struct ledger *ledger = &counts->profile->ledger;
	uint64_t in_kernel = 0, in_profile = 0;

	for (int i = 0; i < OUTCOME_COUNT; i++) {
		uint64_t counted = sampler__outcomes(sampler, i) - counts->taken_back[i];
		uint64_t named = ledger->outcomes[i] - counts->waited[i];

		/* Only what has no name, or not for certain, comes to another outcome than in the
		 * kernel. */
		if (i != OUTCOME_CODE_REPLACED && i != OUTCOME_NAME_UNKNOWN && counted < named)
			return false;
		in_kernel += counted;
		in_profile += named;
	}
	return in_kernel - in_profile == ledger->lost;
}
