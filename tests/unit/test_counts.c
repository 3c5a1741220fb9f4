// SPDX-License-Identifier: BSD-2-Clause
/* How samples reach the profile, with a fake sampler and a fake symbolizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "naming/counts.h"
#include "synthetic.h"

#define FUNCTIONS 3

/* Its next two harvests have these samples of functions.  Each function is a stack. */
struct sampler {
	struct sampler_sink sink;
	uint64_t due[2][FUNCTIONS];
	int harvest, epochs;
};

struct symbolizer {
	struct profile *profile;
	bool doubted[FUNCTIONS]; /* after the next check */
	bool doubts[FUNCTIONS], changes;
	uint32_t thread, stacks[FUNCTIONS];
	bool exact;
};

struct bench {
	struct profile *profile;
	struct sampler sampler;
	struct symbolizer symbolizer;
	struct counts *counts;
};

size_t sampler__drain(struct sampler *sampler)
{
	(void)sampler;
	return 0;
}

void sampler__harvest(struct sampler *sampler)
{
	const struct bench *bench =
		(const void *)((char *)sampler - offsetof(struct bench, sampler));
	const struct symbolizer *symbolizer = &bench->symbolizer;

	for (int i = 0; i < FUNCTIONS && sampler->harvest < 2; i++)
		if (sampler->due[sampler->harvest][i])
			sampler->sink.count(
				sampler->sink.context,
				(uint64_t)symbolizer->thread << 32 | symbolizer->stacks[i], 0,
				(struct amount){ .count = sampler->due[sampler->harvest][i] },
				OUTCOME_PYTHON, false);
	sampler->harvest++;
}

void sampler__begin_epoch(struct sampler *sampler)
{
	sampler->epochs++;
}

void sampler__age(struct sampler *sampler)
{
	(void)sampler;
}

uint64_t sampler__outcomes(const struct sampler *sampler, uint32_t event, enum outcome outcome)
{
	(void)sampler;
	(void)event;
	(void)outcome;
	return 0;
}

struct target_map *sampler__targets(struct sampler *sampler)
{
	(void)sampler;
	return NULL;
}

void symbolizer__learn(struct symbolizer *symbolizer, const struct code_record *record, size_t size)
{
	(void)symbolizer;
	(void)record;
	(void)size;
}

bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack)
{
	(void)symbolizer;
	(void)definition;
	(void)thread;
	(void)stack;
	return false;
}

bool symbolizer__check(struct symbolizer *symbolizer, symbolizer__identify identify, void *context)
{
	(void)identify;
	(void)context;
	memcpy(symbolizer->doubts, symbolizer->doubted, sizeof(symbolizer->doubts));
	return symbolizer->changes;
}

void symbolizer__see(struct symbolizer *symbolizer, uint32_t thread, uint32_t stack, uint32_t event,
		     uint64_t samples)
{
	(void)event;
	(void)symbolizer;
	(void)thread;
	(void)stack;
	(void)samples;
}

bool symbolizer__is_stale(const struct symbolizer *symbolizer, uint32_t thread, uint32_t stack)
{
	(void)thread;
	for (int i = 0; i < FUNCTIONS; i++)
		if (symbolizer->stacks[i] == stack)
			return symbolizer->doubts[i];
	return false;
}

bool symbolizer__is_exact(const struct symbolizer *symbolizer, uint32_t thread)
{
	(void)thread;
	return symbolizer->exact;
}

uint32_t symbolizer__reason(struct symbolizer *symbolizer, enum outcome outcome)
{
	uint32_t location = synthetic__reason(symbolizer->profile, outcome);

	return profile__stack(symbolizer->profile, &location, 1);
}

void symbolizer__settle(struct symbolizer *symbolizer)
{
	memset(symbolizer->doubts, 0, sizeof(symbolizer->doubts));
}

uint32_t symbolizer__first_thread(struct symbolizer *symbolizer,
				  const struct target_process *target)
{
	(void)target;
	return symbolizer->thread;
}

/* Defines all functions, beginning with FIRST: the order determines the numbers of stacks. */
static void define_all(struct symbolizer *symbolizer, int first)
{
	static const char *const names[FUNCTIONS] = { "zero", "one", "two" };

	symbolizer->thread = synthetic__thread(symbolizer->profile, 7, "test", 7, "main");
	for (int i = first; i < first + FUNCTIONS; i++) {
		uint32_t location = synthetic__location(symbolizer->profile, names[i % FUNCTIONS],
							"/", "a.py", 1, 1);

		symbolizer->stacks[i % FUNCTIONS] =
			profile__stack(symbolizer->profile, &location, 1);
	}
}

/* All stacks get other numbers. */
void symbolizer__begin_anew(struct symbolizer *symbolizer)
{
	define_all(symbolizer, 1);
}

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	bench->profile = profile__new();
	bench->symbolizer.profile = bench->profile;
	define_all(&bench->symbolizer, 0);
	bench->counts = counts__new(bench->profile, &bench->symbolizer);
	bench->sampler.sink = counts__sink(bench->counts);
	*state = bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;

	counts__free(bench->counts);
	profile__free(bench->profile);
	free(bench);
	return 0;
}

/* Settles with the samples from BEFORE the check and from MEANWHILE.  CHANGES: the check wants all
 * stacks defined anew.  DOUBTED: what is in doubt after it. */
static void settle(struct bench *bench, const uint64_t before[FUNCTIONS],
		   const uint64_t meanwhile[FUNCTIONS], bool changes, const bool doubted[FUNCTIONS])
{
	memcpy(bench->sampler.due[0], before, sizeof(bench->sampler.due[0]));
	memcpy(bench->sampler.due[1], meanwhile, sizeof(bench->sampler.due[1]));
	bench->sampler.harvest = 0;
	bench->symbolizer.changes = changes;
	memcpy(bench->symbolizer.doubted, doubted, sizeof(bench->symbolizer.doubted));
	counts__settle(bench->counts, &bench->sampler);
}

static const uint64_t nothing[FUNCTIONS];
static const bool no_doubt[FUNCTIONS];

/* Samples in the profile whose leaf is NAME. */
static uint64_t counted(const struct bench *bench, const char *name)
{
	const struct profile *profile = bench->profile;
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_stack *stack = &profile->stacks[profile->samples[i].stack];
		uint32_t function = profile->locations[stack->locations[0]].function;

		if (!strcmp(profile->strings[profile->functions[function].name], name))
			sum += profile->samples[i].amount.count;
	}
	return sum;
}

static uint64_t replaced(const struct bench *bench)
{
	return bench->profile->ledgers[0].outcomes[OUTCOME_CODE_REPLACED];
}

static void names_checked_samples(void **state)
{
	struct bench *bench = *state;

	settle(bench, (uint64_t[]){ 5, 6, 0 }, nothing, false, no_doubt);
	assert_int_equal(counted(bench, "zero"), 5);
	assert_int_equal(counted(bench, "one"), 6);
	assert_int_equal(replaced(bench), 0);
	assert_int_equal(bench->sampler.epochs, 0);
}

static void keeps_samples_of_the_check_waiting(void **state)
{
	struct bench *bench = *state;

	settle(bench, (uint64_t[]){ 5, 6, 7 }, (uint64_t[]){ 10, 20, 30 }, true,
	       (bool[]){ true, false, false });
	assert_int_equal(bench->sampler.epochs, 1);
	/* In doubt after the check: these samples get no name. */
	assert_int_equal(counted(bench, "zero"), 0);
	assert_int_equal(replaced(bench), 15);
	assert_int_equal(counted(bench, "one"), 6);
	assert_int_equal(counted(bench, "two"), 7);
	settle(bench, nothing, nothing, false, (bool[]){ false, true, false });
	assert_int_equal(counted(bench, "one"), 6);
	assert_int_equal(replaced(bench), 35);
	assert_int_equal(counted(bench, "two"), 37);
}

static struct ledger account(const struct bench *bench, uint64_t events)
{
	struct ledger ledger = { .events = events };

	counts__account(bench->counts, 0, &ledger);
	return ledger;
}

/* Waiting samples that may be in doubt get no name. */
static void takes_waiting_samples_when_it_begins_anew(void **state)
{
	struct bench *bench = *state;
	const struct profile *retired;

	for (int i = 0; i < 2; i++) {
		bench->symbolizer.exact = i;
		settle(bench, (uint64_t[]){ 1, 1, 1 }, (uint64_t[]){ 0, 0, 30 }, true, no_doubt);
		retired = counts__begin_anew(bench->counts, &bench->sampler);
		assert_non_null(retired);
		assert_int_equal(retired->sample_count, i ? 3 : 4);
		assert_int_equal(bench->profile->sample_count, 0);
		assert_int_equal(bench->profile->ledgers[0].outcomes[OUTCOME_PYTHON], i ? 37 : 3);
		assert_int_equal(replaced(bench), 30);
		if (!i) {
			settle(bench, (uint64_t[]){ 1, 0, 0 }, nothing, false, no_doubt);
			settle(bench, nothing, nothing, false, no_doubt);
			assert_int_equal(counted(bench, "zero"), 1);
			profile__clear_samples(bench->profile);
		}
	}
	settle(bench, (uint64_t[]){ 1, 2, 3 }, nothing, false, no_doubt);
	assert_int_equal(counted(bench, "zero"), 1);
	assert_int_equal(counted(bench, "one"), 2);
	assert_int_equal(counted(bench, "two"), 3);
}

/* Samples under an old name are counted until the retired profile is freed.  Later ones are
 * lost. */
static void counts_late_samples(void **state)
{
	const struct sampler_sink *sink;
	struct bench *bench = *state;
	uint64_t name = (uint64_t)bench->symbolizer.thread << 32 | bench->symbolizer.stacks[2];

	sink = &bench->sampler.sink;
	assert_non_null(counts__begin_anew(bench->counts, &bench->sampler));
	assert_null(counts__begin_anew(bench->counts, &bench->sampler));
	sink->count(sink->context, name, 0, (struct amount){ .count = 10 }, OUTCOME_PYTHON, true);
	settle(bench, (uint64_t[]){ 0, 0, 5 }, nothing, false, no_doubt);
	assert_int_equal(counted(bench, "two"), 15);
	assert_int_equal(bench->profile->thread_count, 1);
	assert_int_equal(bench->profile->sample_count, 1);
	assert_int_equal(bench->profile->ledgers[0].outcomes[OUTCOME_PYTHON], 15);
	settle(bench, nothing, nothing, false, no_doubt);
	sink->count(sink->context, name, 0, (struct amount){ .count = 20 }, OUTCOME_PYTHON, true);
	assert_int_equal(account(bench, 35).lost, 20);
	assert_non_null(counts__begin_anew(bench->counts, &bench->sampler));
}

static void leaves_nothing_at_the_end(void **state)
{
	struct bench *bench = *state;

	bench->sampler.due[0][0] = 5;
	bench->sampler.due[1][1] = 6;
	bench->symbolizer.changes = true;
	counts__settle_all(bench->counts, &bench->sampler);
	assert_int_equal(counted(bench, "zero"), 5);
	assert_int_equal(counted(bench, "one"), 6);
}

static uint64_t define(const struct bench *bench, uint64_t serial)
{
	const struct definition definition = { .serial = serial };

	return bench->sampler.sink.define(bench->sampler.sink.context, &definition);
}

static void takes_back_excluded_samples(void **state)
{
	const struct sampler_sink *sink;
	struct bench *bench = *state;
	struct ledger ledger;

	sink = &bench->sampler.sink;
	counts__exclude(bench->counts, 5, EXCLUDED_BY_FILTER, NULL);
	counts__exclude(bench->counts, 6, EXCLUDED_UNKNOWN, "gone.py");
	sink->count(sink->context, define(bench, 5), 0, (struct amount){ .count = 10 },
		    OUTCOME_PYTHON, false);
	sink->count(sink->context, define(bench, 6), 0, (struct amount){ .count = 20 },
		    OUTCOME_NO_PYTHON, false);
	sink->count(sink->context, define(bench, 7), 0, (struct amount){ .count = 40 },
		    OUTCOME_PYTHON, false);
	counts__add_unknown(bench->counts, 6, 3);
	settle(bench, (uint64_t[]){ 1, 0, 0 }, nothing, false, no_doubt);
	ledger = account(bench, 71);
	assert_int_equal(ledger.events, 41);
	assert_int_equal(ledger.lost, 40);
	/* The filter may still exclude it. */
	assert_int_equal(ledger.unknown.samples, 0);
	settle(bench, nothing, nothing, false, no_doubt);
	ledger = account(bench, 71);
	assert_int_equal(ledger.unknown.samples, 23);
	assert_string_equal(ledger.unknown.commands[0].name, "gone.py");
	assert_int_equal(ledger.unknown.commands[0].samples, 23);
	assert_int_equal(bench->profile->sample_count, 1);
}

/* Samples from before the filter excluded it are not unknown either.  Samples under its old
 * name stay taken back. */
static void a_process_excluded_by_the_filter_later_is_not_unknown(void **state)
{
	const struct sampler_sink *sink;
	struct bench *bench = *state;
	struct ledger ledger;
	uint64_t name;

	sink = &bench->sampler.sink;
	counts__exclude(bench->counts, 5, EXCLUDED_UNKNOWN, "app.py");
	name = define(bench, 5);
	sink->count(sink->context, name, 0, (struct amount){ .count = 10 }, OUTCOME_PYTHON, false);
	counts__exclude(bench->counts, 5, EXCLUDED_BY_FILTER, NULL);
	sink->count(sink->context, name, 0, (struct amount){ .count = 20 }, OUTCOME_PYTHON, false);
	counts__settle_all(bench->counts, &bench->sampler);
	ledger = account(bench, 30);
	assert_int_equal(ledger.events, 0);
	assert_int_equal(ledger.unknown.samples, 0);
}

/* Samples that were taken back before stay unknown. */
static void samples_before_an_inclusion_stay_unknown(void **state)
{
	const struct sampler_sink *sink;
	struct bench *bench = *state;
	struct ledger ledger;

	sink = &bench->sampler.sink;
	counts__exclude(bench->counts, 5, EXCLUDED_UNKNOWN, "app.py");
	sink->count(sink->context, define(bench, 5), 0, (struct amount){ .count = 10 },
		    OUTCOME_PYTHON, false);
	counts__include(bench->counts, 5);
	counts__settle_all(bench->counts, &bench->sampler);
	ledger = account(bench, 10);
	assert_int_equal(ledger.events, 0);
	assert_int_equal(ledger.unknown.samples, 10);
	assert_string_equal(ledger.unknown.commands[0].name, "app.py");
}

/* Such samples are in the ledger, but not in BPF's counts of outcomes. */
static void samples_before_identification_are_counted_separately(void **state)
{
	struct bench *bench = *state;

	counts__add_waited(bench->counts, NULL, OUTCOME_NO_INTERPRETER, 4);
	counts__add_waited(bench->counts, NULL, OUTCOME_NOT_KNOWN_YET, 2);
	assert_int_equal(bench->profile->ledgers[0].outcomes[OUTCOME_NO_INTERPRETER], 4);
	assert_int_equal(bench->profile->ledgers[0].outcomes[OUTCOME_NOT_KNOWN_YET], 2);
	assert_true(counts__agree(bench->counts, 0, &bench->sampler));
}

/* A name from before the inclusion stays excluded, even after the profile began anew. */
static void takes_back_nothing_after_an_inclusion(void **state)
{
	const struct sampler_sink *sink;
	struct bench *bench = *state;
	uint64_t name;

	sink = &bench->sampler.sink;
	counts__exclude(bench->counts, 5, EXCLUDED_BY_FILTER, NULL);
	name = define(bench, 5);
	settle(bench, nothing, nothing, false, no_doubt);
	assert_non_null(counts__begin_anew(bench->counts, &bench->sampler));
	assert_int_equal(define(bench, 5), name);
	sink->count(sink->context, name, 0, (struct amount){ .count = 10 }, OUTCOME_PYTHON, false);
	counts__include(bench->counts, 5);
	sink->count(sink->context, define(bench, 5), 0, (struct amount){ .count = 20 },
		    OUTCOME_PYTHON, false);
	assert_int_equal(account(bench, 30).events, 20);
	assert_int_equal(account(bench, 30).lost, 20);
}

/* After two settlements, no sample of it can be on its way. */
static void forgets_excluded_processes(void **state)
{
	struct bench *bench = *state;
	uint64_t name;

	counts__exclude(bench->counts, 5, EXCLUDED_BY_FILTER, NULL);
	name = define(bench, 5);
	settle(bench, nothing, nothing, false, no_doubt);
	counts__exclude(bench->counts, 5, EXCLUDED_BY_FILTER, NULL);
	settle(bench, nothing, nothing, false, no_doubt);
	assert_int_equal(define(bench, 5), name);
	settle(bench, nothing, nothing, false, no_doubt);
	assert_int_not_equal(define(bench, 5), name);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(names_checked_samples),
		TEST(keeps_samples_of_the_check_waiting),
		TEST(takes_waiting_samples_when_it_begins_anew),
		TEST(counts_late_samples),
		TEST(leaves_nothing_at_the_end),
		TEST(takes_back_excluded_samples),
		TEST(takes_back_nothing_after_an_inclusion),
		TEST(forgets_excluded_processes),
		TEST(a_process_excluded_by_the_filter_later_is_not_unknown),
		TEST(samples_before_an_inclusion_stay_unknown),
		TEST(samples_before_identification_are_counted_separately),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
