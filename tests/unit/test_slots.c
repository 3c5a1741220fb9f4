// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sampling/slots.h"

#define SLOT 5

static struct bucket buckets[2 * STACK_BUCKETS];
static struct definition definition;
static unsigned int defined;
static uint64_t counted[4]; /* by the stack's name, from its hash */
static uint64_t counted_old;
static uint32_t counted_event;

static uint64_t define(void *context, const struct definition *taken)
{
	(void)context;
	defined++;
	return taken->hash & 3;
}

static uint64_t rename_old(void *context, uint64_t name)
{
	(void)context;
	return name + 1;
}

static void count(void *context, uint64_t name, uint32_t event, struct amount amount,
		  enum outcome outcome, bool old)
{
	(void)context;
	counted_event = event;
	(void)outcome;
	assert_int_equal(amount.value, 10 * amount.count);
	counted[name] += amount.count;
	counted_old += old ? amount.count : 0;
}

/* COUNT samples, each with the value 10. */
static struct amount samples(uint64_t count)
{
	return (struct amount){ count, 10 * count };
}

static struct slot *kernels_slot(void)
{
	return &buckets[SLOT / SLOTS_PER_BUCKET].slots[SLOT % SLOTS_PER_BUCKET];
}

static struct slots *begin(void)
{
	const struct sampler_sink sink = { .define = define, .rename = rename_old, .count = count };

	memset(buckets, 0, sizeof(buckets));
	memset(counted, 0, sizeof(counted));
	memset(&definition, 0, sizeof(definition));
	defined = counted_old = 0;
	definition.hash = 1;
	definition.slot = SLOT;
	definition.depth = 1;
	definition.frames[0].kind = FRAME_PYTHON;
	return slots__new(&sink, buckets, 2);
}

static size_t size_of(uint32_t depth)
{
	return DEFINITION_HEADER_BYTES + depth * sizeof(struct frame);
}

/* The definition of the slot's owner HASH comes, whose samples begin at BASE. */
static void hear_of(struct slots *slots, uint64_t hash, uint64_t base)
{
	definition.hash = hash;
	definition.base = samples(base);
	slots__take(slots, &definition, size_of(1));
	slots__harvest(slots);
}

static void a_slot_goes_from_owner_to_owner(void **state)
{
	struct slots *slots = begin();

	(void)state;
	slots__take(slots, &definition, size_of(1));
	*kernels_slot() = (struct slot){ .hash = 1, .amount = samples(3), .defined = 1 };
	slots__harvest(slots);
	assert_int_equal(counted[1], 3);
	/* The next stack took the slot at 5, but its definition has not come yet. */
	*kernels_slot() = (struct slot){ .hash = 2, .amount = samples(9), .defined = 6 };
	slots__harvest(slots);
	assert_int_equal(counted[1], 3);
	hear_of(slots, 2, 5);
	assert_int_equal(counted[1], 5);
	assert_int_equal(counted[2], 4);
	assert_int_equal(slots__undefined(slots, 0), 0);
	slots__free(slots);
}

/* The definitions come only later. */
static void an_owner_that_returns_does_not_get_the_samples_of_others(void **state)
{
	struct slots *slots = begin();

	(void)state;
	slots__take(slots, &definition, size_of(1));
	*kernels_slot() = (struct slot){ .hash = 1, .amount = samples(3), .defined = 1 };
	slots__harvest(slots);
	/* Another stack took the slot at 4, and the first one again at 6. */
	*kernels_slot() = (struct slot){ .hash = 1, .amount = samples(7), .defined = 7 };
	slots__harvest(slots);
	assert_int_equal(counted[1], 3);
	hear_of(slots, 2, 4);
	assert_int_equal(counted[1], 4);
	assert_int_equal(counted[2], 0);
	hear_of(slots, 1, 6);
	assert_int_equal(counted[1], 5);
	assert_int_equal(counted[2], 2);
	slots__free(slots);
}

static void samples_without_a_definition_are_counted_as_undefined(void **state)
{
	struct slots *slots = begin();

	(void)state;
	*kernels_slot() = (struct slot){ .hash = 1, .amount = samples(7), .defined = 5 };
	slots__harvest(slots);
	assert_int_equal(slots__undefined(slots, 0), 7);
	/* But the definition may still come. */
	assert_int_equal(slots__never_defined(slots, 0), 0);
	definition.base = samples(4);
	slots__take(slots, &definition, size_of(1));
	slots__harvest(slots);
	assert_int_equal(counted[1], 3);
	assert_int_equal(slots__undefined(slots, 0), 4);
	assert_int_equal(slots__never_defined(slots, 0), 4);
	slots__free(slots);
}

/* Passes the definition on in memory of exactly SIZE bytes. */
static void pass(struct slots *slots, size_t size)
{
	void *record = malloc(size);

	memcpy(record, &definition, size);
	slots__take(slots, record, size);
	free(record);
}

#define REFUSES(change)                       \
	do {                                  \
		slots = begin();              \
		change;                       \
		pass(slots, size_of(1));      \
		assert_int_equal(defined, 0); \
		slots__free(slots);           \
	} while (0)

static void invalid_definitions_are_ignored(void **state)
{
	struct slots *slots;

	(void)state;
	REFUSES(definition.cpu = 2);
	REFUSES(definition.slot = STACK_SLOTS);
	REFUSES(definition.outcome = OUTCOME_COUNT);
	REFUSES(definition.depth = 2);
	REFUSES(definition.depth = UINT16_MAX);
	REFUSES(definition.kernel_depth = 1);
	REFUSES(definition.kernel_depth = KERNEL_FRAMES_MAX + 1);
	REFUSES(definition.kernel_depth = UINT32_MAX);
	REFUSES(definition.native_depth = NATIVE_FRAMES_MAX + 1);
	REFUSES(definition.native_depth = UINT32_MAX);
	slots = begin();
	pass(slots, DEFINITION_HEADER_BYTES - 1);
	pass(slots, size_of(1) - 1);
	assert_int_equal(defined, 0);
	pass(slots, size_of(1));
	assert_int_equal(defined, 1);
	slots__free(slots);
}

/* A stack that is not defined again is forgotten at the second aging.  Nothing is counted twice. */
static void stacks_that_are_not_seen_again_age(void **state)
{
	struct slots *slots = begin();

	(void)state;
	slots__take(slots, &definition, size_of(1));
	*kernels_slot() = (struct slot){ .hash = 1, .amount = samples(3), .defined = 1 };
	slots__harvest(slots);
	slots__age(slots);
	/* A sample that was on its way when the epoch began. */
	kernels_slot()->amount = samples(4);
	assert_int_equal(counted_old, 0);
	slots__harvest(slots);
	assert_int_equal(counted[1], 4);
	assert_int_equal(counted_old, 1);
	slots__age(slots);
	slots__harvest(slots);
	assert_int_equal(slots__undefined(slots, 0), 0);
	definition.hash = 2;
	definition.base = samples(4);
	*kernels_slot() = (struct slot){ .hash = 2, .amount = samples(6), .defined = 5 };
	slots__take(slots, &definition, size_of(1));
	slots__harvest(slots);
	assert_int_equal(counted[1], 4);
	assert_int_equal(counted[2], 2);
	assert_int_equal(slots__undefined(slots, 0), 0);
	slots__free(slots);
}

/* A thread that waits with the stack will not define it again for a long time. */
static void a_kept_stack_gets_a_new_name(void **state)
{
	struct slots *slots = begin();

	(void)state;
	slots__take(slots, &definition, size_of(1));
	*kernels_slot() = (struct slot){ .hash = 1, .amount = samples(3), .defined = 1 };
	slots__harvest(slots);
	for (uint64_t name = 2; name <= 3; name++) {
		slots__age(slots);
		slots__keep(slots, SLOT + 1, 1);
		slots__keep(slots, SLOT, 2);
		slots__keep(slots, SLOT, 1);
		slots__keep(slots, SLOT, 1);
		kernels_slot()->amount = samples(3 * name);
		slots__harvest(slots);
		assert_int_equal(counted[name], 3);
	}
	assert_int_equal(counted[1], 3);
	assert_int_equal(counted_old, 0);
	slots__free(slots);
}

/* The hash includes the event, so samples without a definition have one, too. */
static void events_are_counted_separately(void **state)
{
	uint64_t of_second = 1ULL << SLOT_EVENT_SHIFT | 3;
	struct slots *slots = begin();

	(void)state;
	*kernels_slot() = (struct slot){ .hash = of_second, .amount = samples(4) };
	slots__harvest(slots);
	assert_int_equal(slots__undefined(slots, 0), 0);
	assert_int_equal(slots__undefined(slots, 1), 4);
	definition.hash = of_second;
	slots__take(slots, &definition, size_of(1));
	kernels_slot()->defined = 1;
	slots__harvest(slots);
	assert_int_equal(slots__undefined(slots, 1), 0);
	assert_int_equal(counted[3], 4);
	assert_int_equal(counted_event, 1);
	slots__free(slots);
}

static void stacks_that_are_seen_again_stay(void **state)
{
	struct slots *slots = begin();

	(void)state;
	slots__take(slots, &definition, size_of(1));
	for (uint64_t seen = 1; seen < 5; seen++) {
		slots__age(slots);
		definition.base = samples(seen - 1);
		slots__take(slots, &definition, size_of(1));
		*kernels_slot() =
			(struct slot){ .hash = 1, .amount = samples(seen), .defined = seen };
		slots__harvest(slots);
		assert_int_equal(counted[1], seen);
	}
	slots__free(slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_goes_from_owner_to_owner),
		cmocka_unit_test(an_owner_that_returns_does_not_get_the_samples_of_others),
		cmocka_unit_test(samples_without_a_definition_are_counted_as_undefined),
		cmocka_unit_test(invalid_definitions_are_ignored),
		cmocka_unit_test(stacks_that_are_not_seen_again_age),
		cmocka_unit_test(a_kept_stack_gets_a_new_name),
		cmocka_unit_test(events_are_counted_separately),
		cmocka_unit_test(stacks_that_are_seen_again_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
