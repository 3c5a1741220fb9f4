// SPDX-License-Identifier: BSD-2-Clause
/*
 * A stack's name is one word: the numbers of its thread and its stack in the profile.
 *
 * When the profile begins anew, the numbers change, and all stacks are defined anew.  Samples that
 * are still on their way come under the old names.  So the retired profile stays until they are
 * settled, and they are copied from it.
 */
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "naming/counts.h"
#include "profile/copy.h"

/* Names that are not a stack of the profile. */
#define NO_NAME		 UINT64_MAX /* of an unknown process: should not happen */
#define UNWANTED	 (UINT64_MAX - 1)
#define UNKNOWN		 ((uint64_t)UINT32_MAX << 32) /* plus the number of the excluded process */
#define IS_STACK(name)	 ((name) < UNKNOWN)
#define IS_UNKNOWN(name) (!IS_STACK(name) && (name) < UNWANTED)

/* After as many settlements, no sample of an excluded process or a retired profile is on its
 * way. */
#define SETTLED_UNTIL_FORGOTTEN 2

/* Samples of one name, event and outcome.  A stack may have several outcomes if functions have only
 * their first line. */
struct entry {
	struct {
		uint64_t name;
		uint32_t outcome, event;
	} key;
	struct amount amount;
	UT_hash_handle hh;
};

struct excluded_process {
	uint64_t serial;
	uint32_t number; /* key of BY_NUMBER */
	enum exclusion why;
	char *command;
	uint64_t unknown;     /* samples */
	unsigned int settled; /* settlements since it was excluded */
	UT_hash_handle hh, by_number;
};

struct counts {
	struct profile *profile;
	struct symbolizer *symbolizer;
	struct entry *entries; /* not checked yet */
	struct profile *retired;
	struct entry *retired_entries;
	struct profile_copy copy; /* from there to the profile, while names change */
	unsigned int retired_settled;
	struct excluded_process *excluded, *excluded_by_number;
	uint32_t last_number;
	struct unknown_processes unknown; /* of excluded processes that were removed */
	uint64_t taken_back[EVENTS_MAX][OUTCOME_COUNT]; /* of excluded processes */
	uint64_t waited[OUTCOME_COUNT]; /* of the first event, not in BPF's outcomes */
	uint64_t unnamed[EVENTS_MAX], unmatched[EVENTS_MAX];
};

struct counts *counts__new(struct profile *profile, struct symbolizer *symbolizer)
{
	struct counts *counts = xcalloc(1, sizeof(*counts));

	counts->profile = profile;
	counts->symbolizer = symbolizer;
	return counts;
}

static void forget_excluded(struct counts *counts, struct excluded_process *process)
{
	unknown_processes__add(&counts->unknown, process->command, process->unknown);
	HASH_DELETE(hh, counts->excluded, process);
	HASH_DELETE(by_number, counts->excluded_by_number, process);
	free(process->command);
	free(process);
}

static void end_excluded(struct counts *counts)
{
	while (counts->excluded)
		forget_excluded(counts, counts->excluded);
}

static void forget_retired(struct counts *counts)
{
	HASH_EMPTY(counts->retired_entries, free);
	profile__free(counts->retired);
	counts->retired = NULL;
	xtrim();
}

void counts__free(struct counts *counts)
{
	if (!counts)
		return;
	HASH_EMPTY(counts->entries, free);
	if (counts->retired)
		forget_retired(counts);
	end_excluded(counts);
	free(counts);
}

static void add_entry(struct entry **entries, uint64_t name, uint32_t event, enum outcome outcome,
		      struct amount amount)
{
	struct entry key = { .key = { name, outcome, event } };
	struct entry *entry = HASH_GET(hh, *entries, &key.key);

	if (!entry) {
		entry = xcalloc(1, sizeof(*entry));
		entry->key = key.key;
		HASH_ADD(hh, *entries, key, sizeof(entry->key), entry);
	}
	amount__add(&entry->amount, amount);
}

static void learn_code(void *context, const struct code_record *record, size_t size)
{
	struct counts *counts = context;

	symbolizer__learn(counts->symbolizer, record, size);
}

static struct excluded_process *find_excluded(const struct counts *counts, uint64_t serial)
{
	return HASH_GET(hh, counts->excluded, &serial);
}

static struct excluded_process *add_excluded(struct counts *counts, uint64_t serial)
{
	struct excluded_process *process = xcalloc(1, sizeof(*process));

	process->serial = serial;
	process->number = ++counts->last_number;
	HASH_ADD(hh, counts->excluded, serial, sizeof(process->serial), process);
	HASH_ADD(by_number, counts->excluded_by_number, number, sizeof(process->number), process);
	return process;
}

void counts__exclude(struct counts *counts, uint64_t serial, enum exclusion why,
		     const char *command)
{
	struct excluded_process *process = find_excluded(counts, serial);

	if (!process)
		process = add_excluded(counts, serial);
	if (command) {
		free(process->command);
		process->command = xstrdup(command);
	}
	if (why == EXCLUDED_BY_FILTER)
		process->unknown = 0;
	process->why = why;
	process->settled = 0;
}

void counts__include(struct counts *counts, uint64_t serial)
{
	struct excluded_process *process = find_excluded(counts, serial);

	if (process)
		process->why = EXCLUDED_NOT;
}

/* Counts SAMPLES of excluded process NUMBER as unknown, unless the filter excludes it. */
static void count_unknown(struct counts *counts, uint32_t number, uint64_t samples)
{
	struct excluded_process *process = HASH_GET(by_number, counts->excluded_by_number, &number);

	if (!process)
		unknown_processes__add(&counts->unknown, NULL, samples);
	else if (process->why != EXCLUDED_BY_FILTER)
		process->unknown += samples;
}

void counts__add_unknown(struct counts *counts, uint64_t serial, uint64_t samples)
{
	const struct excluded_process *process = find_excluded(counts, serial);

	count_unknown(counts, process ? process->number : 0, samples);
}

static uint64_t define_stack(void *context, const struct definition *definition)
{
	struct counts *counts = context;
	const struct excluded_process *excluded = find_excluded(counts, definition->serial);
	uint32_t thread, stack;

	if (excluded && excluded->why == EXCLUDED_BY_FILTER)
		return UNWANTED;
	if (excluded && excluded->why == EXCLUDED_UNKNOWN)
		return UNKNOWN | excluded->number;
	if (!symbolizer__define(counts->symbolizer, definition, &thread, &stack))
		return NO_NAME;
	return (uint64_t)thread << 32 | stack;
}

static uint64_t rename_stack(void *context, uint64_t name)
{
	struct profile_copy *copy = &((struct counts *)context)->copy;

	if (!IS_STACK(name))
		return name;
	return (uint64_t)profile_copy__thread(copy, name >> 32) << 32 |
	       profile_copy__stack(copy, name);
}

static void count_stack(void *context, uint64_t name, uint32_t event, struct amount amount,
			enum outcome outcome, bool old)
{
	struct counts *counts = context;

	if (name == NO_NAME || (IS_STACK(name) && old && !counts->retired)) {
		counts->unnamed[event] += amount.count;
		/* Without a count, it is the time of a wait whose stack is forgotten. */
		counts->unmatched[event] += amount.count ? 0 : amount.value;
	} else if (!IS_STACK(name)) {
		counts->taken_back[event][outcome] += amount.count;
		if (IS_UNKNOWN(name))
			count_unknown(counts, name, amount.count);
	} else if (old) {
		add_entry(&counts->retired_entries, name, event, outcome, amount);
	} else {
		symbolizer__see(counts->symbolizer, name >> 32, name, event, amount.count);
		add_entry(&counts->entries, name, event, outcome, amount);
	}
}

void counts__add_waited(struct counts *counts, const struct target_process *target,
			enum outcome outcome, uint64_t samples)
{
	const struct amount amount = { samples, samples * profile__period(counts->profile, 0) };
	uint32_t thread, stack;

	if (!samples)
		return;
	thread = symbolizer__first_thread(counts->symbolizer, target);
	stack = symbolizer__reason(counts->symbolizer, outcome);
	counts->waited[outcome] += samples;
	counts->profile->ledgers[0].outcomes[outcome] += samples;
	profile__add(counts->profile, thread, stack, 0, amount);
}

struct sampler_sink counts__sink(struct counts *counts)
{
	return (struct sampler_sink){
		.learn = learn_code,
		.define = define_stack,
		.rename = rename_stack,
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

static bool is_stale(const struct counts *counts, const struct entry *entry)
{
	return symbolizer__is_stale(counts->symbolizer, entry->key.name >> 32, entry->key.name);
}

/* Counts ENTRY for THREAD, with STACK or with the frame of OUTCOME. */
static void take(struct counts *counts, uint32_t thread, uint32_t stack, enum outcome outcome,
		 const struct entry *entry)
{
	uint32_t event = entry->key.event;

	if (outcome == OUTCOME_CODE_REPLACED)
		stack = symbolizer__reason(counts->symbolizer, outcome);
	else if ((outcome == OUTCOME_PYTHON || outcome == OUTCOME_LINE_UNKNOWN) &&
		 profile__lacks_names(counts->profile, stack))
		outcome = OUTCOME_NAME_UNKNOWN;
	counts->profile->ledgers[event].outcomes[outcome] += entry->amount.count;
	profile__add(counts->profile, thread, stack, event, entry->amount);
}

/* The new profile cannot name what still waits for a check. */
static bool may_be_stale(const struct counts *counts, const struct entry *entry)
{
	return !symbolizer__is_exact(counts->symbolizer, entry->key.name >> 32);
}

/* Counts the entries that JUDGE calls stale as replaced code; with ALL, also the others. */
static void take_entries(struct counts *counts, struct entry **entries,
			 bool (*judge)(const struct counts *counts, const struct entry *entry),
			 bool all)
{
	struct entry *entry, *next;

	HASH_ITER (hh, *entries, entry, next) {
		bool stale = judge(counts, entry);

		if (!all && !stale)
			continue;
		take(counts, entry->key.name >> 32, entry->key.name,
		     stale ? OUTCOME_CODE_REPLACED : entry->key.outcome, entry);
		HASH_DEL(*entries, entry);
		free(entry);
	}
}

/* Copies the late samples of the retired profile. */
static void settle_retired(struct counts *counts)
{
	struct profile_copy copy;
	struct entry *entry;

	if (!counts->retired)
		return;
	if (counts->retired_entries) {
		profile_copy__init(&copy, counts->retired, counts->profile);
		for (entry = counts->retired_entries; entry; entry = entry->hh.next)
			take(counts, profile_copy__thread(&copy, entry->key.name >> 32),
			     profile_copy__stack(&copy, entry->key.name), entry->key.outcome,
			     entry);
		profile_copy__free(&copy);
		HASH_EMPTY(counts->retired_entries, free);
	}
	if (++counts->retired_settled == SETTLED_UNTIL_FORGOTTEN)
		forget_retired(counts);
}

static void settle_excluded(struct counts *counts)
{
	struct excluded_process *process, *next;

	HASH_ITER (hh, counts->excluded, process, next)
		if (++process->settled == SETTLED_UNTIL_FORGOTTEN)
			forget_excluded(counts, process);
}

void counts__settle(struct counts *counts, struct sampler *sampler)
{
	struct entry *checked;

	sampler__drain(sampler);
	sampler__harvest(sampler);
	checked = counts->entries;
	counts->entries = NULL;
	if (symbolizer__check(counts->symbolizer, identify_codes, sampler)) {
		sampler__begin_epoch(sampler);
		/* Samples that came during the check may be of code that it replaced before or
		 * after it was looked at. */
		sampler__drain(sampler);
		sampler__harvest(sampler);
	}
	take_entries(counts, &checked, is_stale, true);
	take_entries(counts, &counts->entries, is_stale, false);
	settle_retired(counts);
	symbolizer__settle(counts->symbolizer);
	settle_excluded(counts);
}

void counts__settle_all(struct counts *counts, struct sampler *sampler)
{
	counts__settle(counts, sampler);
	/* What came during the first is checked, too. */
	counts__settle(counts, sampler);
	end_excluded(counts);
}

const struct profile *counts__begin_anew(struct counts *counts, struct sampler *sampler)
{
	if (counts->retired)
		return NULL;
	take_entries(counts, &counts->entries, may_be_stale, true);
	counts->retired = profile__retire(counts->profile);
	counts->retired_settled = 0;
	symbolizer__begin_anew(counts->symbolizer);
	profile_copy__init(&counts->copy, counts->retired, counts->profile);
	sampler__age(sampler);
	profile_copy__free(&counts->copy);
	return counts->retired;
}

void counts__account(const struct counts *counts, uint32_t event, struct ledger *ledger)
{
	ledger->lost += counts->unnamed[event];
	ledger->unmatched += counts->unmatched[event];
	if (!event)
		unknown_processes__add_all(&ledger->unknown, &counts->unknown);
	for (int i = 0; i < OUTCOME_COUNT; i++)
		ledger->events -= counts->taken_back[event][i];
}

bool counts__agree(const struct counts *counts, uint32_t event, const struct sampler *sampler)
{
	const struct ledger *ledger = &counts->profile->ledgers[event];
	uint64_t in_kernel = 0, in_profile = 0;

	for (int i = 0; i < OUTCOME_COUNT; i++) {
		uint64_t counted =
			sampler__outcomes(sampler, event, i) - counts->taken_back[event][i];
		uint64_t named = ledger->outcomes[i] - (event ? 0 : counts->waited[i]);

		/* Only samples without a certain name have another outcome in the profile than in
		 * BPF. */
		if (i != OUTCOME_CODE_REPLACED && i != OUTCOME_NAME_UNKNOWN && counted < named)
			return false;
		in_kernel += counted;
		in_profile += named;
	}
	return in_kernel - in_profile == ledger->lost;
}
