// SPDX-License-Identifier: BSD-2-Clause
/*
 * The counters and definitions of bpf/stack.bpf.h, as user space reads them.
 *
 * A slot's counter continues from one owner to the next.  A definition says at which count its
 * stack took the slot.  So a reader takes the counters first, then the definitions in order:
 * each gives the slot's counts up to its base to the previous owner.  The rest belongs to the
 * last owner.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define CPUS		  2
#define VERSION		  0x030d0000
#define STACKS		  20000 /* more than a CPU has slots */
#define NO_STACK	  STACKS

struct owner {
	uint32_t stack;
	uint64_t accounted;
};

static struct image image;
static uint64_t leaf;
static uint64_t counted[STACKS], accounted_for[STACKS + 1];
static struct owner owners[CPUS * STACK_SLOTS];
static uint64_t snapshot[CPUS * STACK_SLOTS];
static uint32_t random_state;

static uint32_t random_number(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

static int set_up(void **state)
{
	(void)state;
	random_state = 1;
	leaf = harness__open_own(&image, VERSION, CPUS);
	memset(counted, 0, sizeof(counted));
	memset(accounted_for, 0, sizeof(accounted_for));
	memset(snapshot, 0, sizeof(snapshot));
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++)
		owners[i] = (struct owner){ .stack = NO_STACK };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return harness__close(&image);
}

static uint64_t lost(void)
{
	return kernel__counters(0)->lost + kernel__counters(1)->lost;
}

/* Samples stack number STACK.  Returns whether it was counted, and then adds it to `counted`. */
static bool sample_stack(uint32_t stack)
{
	uint64_t before = lost();

	image__set(leaf, image.offsets.frame_code, CODE(stack));
	kernel__sample();
	if (lost() != before)
		return false;
	counted[stack]++;
	return true;
}

static void take_snapshot(void)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(snapshot); i++)
		snapshot[i] = kernel__slot(i / STACK_SLOTS, i % STACK_SLOTS)->amount.count;
}

static void account(struct owner *owner, uint64_t up_to)
{
	if (up_to <= owner->accounted)
		return;
	accounted_for[owner->stack] += up_to - owner->accounted;
	owner->accounted = up_to;
}

static void read_definitions(void)
{
	for (size_t i = 0; i < kernel.definition_count; i++) {
		const struct definition *definition = kernel.definitions[i];
		struct owner *owner = &owners[definition->cpu * STACK_SLOTS + definition->slot];

		account(owner, definition->base.count);
		owner->stack = (definition->frames[0].address - CODE(0)) / (CODE(1) - CODE(0));
	}
	kernel__drain();
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++)
		if (owners[i].stack != NO_STACK)
			account(&owners[i], snapshot[i]);
}

static void assert_accounts_are_true(void)
{
	take_snapshot();
	read_definitions();
	assert_int_equal(accounted_for[NO_STACK], 0);
	assert_memory_equal(accounted_for, counted, sizeof(counted));
}

static void defines_a_stack_once(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_true(sample_stack(i % 7));
	assert_int_equal(kernel.definition_count, 7);
	assert_accounts_are_true();
	assert_int_equal(counted[6], 142);
}

static void defines_every_stack_again_in_each_epoch(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		if (i % 20 == 0)
			kernel__begin_epoch();
		assert_true(sample_stack(i % 4));
	}
	assert_int_equal(kernel.definition_count, 4 * 5);
	assert_accounts_are_true();
}

static void separates_cpus_and_threads(void **state)
{
	(void)state;
	assert_true(sample_stack(1));
	kernel.cpu = 1;
	assert_true(sample_stack(1));
	assert_true(sample_stack(1));
	assert_int_equal(kernel.definition_count, 2);
	assert_int_equal(kernel.definitions[1]->cpu, 1);
	assert_int_equal(kernel__counters(0)->events, 1);
	assert_int_equal(kernel__counters(1)->events, 2);

	/* The same frames in another thread are another stack. */
	harness__enter_thread(1);
	kernel.thread_pointer = THREAD_POINTER;
	assert_true(sample_stack(1));
	assert_int_equal(kernel.definition_count, 3);
	assert_int_equal(kernel.definitions[2]->tid, kernel.tid);
	/* So are the same frames in a later thread with the same tid. */
	kernel.start_time++;
	assert_true(sample_stack(1));
	assert_int_equal(kernel.definition_count, 4);
	assert_int_equal(kernel.definitions[3]->tid, kernel.tid);
	assert_int_equal(kernel.definitions[3]->thread_start, kernel.start_time);
	assert_accounts_are_true();
}

static void merges_threads_if_configured(void **state)
{
	(void)state;
	kernel__merge_threads();
	assert_true(sample_stack(1));
	harness__enter_thread(1);
	kernel.thread_pointer = THREAD_POINTER;
	kernel.start_time++;
	assert_true(sample_stack(1));
	assert_int_equal(kernel.definition_count, 1);
	assert_accounts_are_true();
}

static void defines_again_after_a_full_ring(void **state)
{
	(void)state;
	kernel.ring_full = true;
	for (int i = 0; i < 30; i++)
		assert_true(sample_stack(i % 3));
	assert_int_equal(kernel.definition_count, 0);
	assert_int_equal(kernel__cpu_counters(0)->ring_full, 30);
	take_snapshot();
	read_definitions();

	kernel.ring_full = false;
	for (int i = 0; i < 30; i++)
		assert_true(sample_stack(i % 3));
	assert_int_equal(kernel.definition_count, 3);
	assert_int_equal(kernel.definitions[0]->base.count, 0);
	assert_int_equal(kernel__cpu_counters(0)->ring_full, 30);
	assert_int_equal(lost(), 0);
	assert_accounts_are_true();
	assert_int_equal(accounted_for[1], 20);
}

static void accounts_reused_slots_correctly(void **state)
{
	size_t definitions = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		kernel.cpu = random_number(CPUS);
		assert_true(sample_stack(random_number(STACKS)));
		/* User space reads at any time, and samples may come between its two steps. */
		if (random_number(1000) == 0)
			take_snapshot();
		if (random_number(1000) == 0) {
			definitions += kernel.definition_count;
			read_definitions();
		}
	}
	assert_true(definitions > CPUS * STACK_SLOTS);
	assert_int_equal(lost(), 0);
	assert_accounts_are_true();
}

static void counts_every_lost_sample(void **state)
{
	uint64_t refused = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		kernel.cpu = random_number(CPUS);
		kernel.ring_full = random_number(3) == 0;
		refused += !sample_stack(random_number(STACKS));
		if (random_number(1000) == 0)
			take_snapshot();
		if (random_number(1000) == 0)
			read_definitions();
	}
	assert_true(refused > 0);
	assert_int_equal(lost(), refused);

	/* Stacks without a definition get one as soon as they are sampled again. */
	kernel.ring_full = false;
	for (kernel.cpu = 0; kernel.cpu < CPUS; kernel.cpu++)
		for (uint32_t i = 0; i < STACKS; i++)
			sample_stack(i);
	assert_accounts_are_true();
}

/* Finds SLOTS_PER_BUCKET + 1 stacks that share a bucket, by samples on another CPU. */
static void find_bucketful(uint32_t *stacks, uint64_t *hashes)
{
	uint32_t used = 0;

	kernel.cpu = 1;
	for (uint32_t i = 0; used <= SLOTS_PER_BUCKET; i++) {
		assert_true(i < STACKS);
		image__set(leaf, image.offsets.frame_code, CODE(i));
		hashes[used] = kernel__sample().hash;
		if ((hashes[used] ^ hashes[0]) % STACK_BUCKETS == 0)
			stacks[used++] = i;
	}
	kernel.cpu = 0;
	kernel__drain();
}

/* A stack whose definition is not sent yet cannot be evicted. */
static void evicts_only_defined_stacks(void **state)
{
	uint32_t stacks[SLOTS_PER_BUCKET + 1], first, preferred;
	uint64_t hashes[SLOTS_PER_BUCKET + 1];

	(void)state;
	find_bucketful(stacks, hashes);
	first = hashes[0] % STACK_BUCKETS * SLOTS_PER_BUCKET;
	preferred = hashes[SLOTS_PER_BUCKET] >> 62;
	for (uint32_t i = 0; i < SLOTS_PER_BUCKET; i++) {
		kernel.ring_full = i == preferred;
		assert_true(sample_stack(stacks[i]));
		assert_int_equal(kernel__slot(0, first + i)->hash, hashes[i]);
		assert_int_equal(kernel__slot(0, first + i)->defined, i != preferred);
	}
	kernel.ring_full = false;
	assert_true(sample_stack(stacks[SLOTS_PER_BUCKET]));
	assert_int_equal(kernel__slot(0, first + preferred)->hash, hashes[preferred]);
	assert_int_equal(kernel.definitions[kernel.definition_count - 1]->slot,
			 first + (preferred + 1) % SLOTS_PER_BUCKET);
	assert_true(sample_stack(stacks[preferred]));
	assert_true(kernel__slot(0, first + preferred)->defined);
	/* The stack that took the slot is defined at its own count. */
	assert_int_equal(kernel__slot(0, first + (preferred + 1) % SLOTS_PER_BUCKET)->defined,
			 kernel__slot(0, first + (preferred + 1) % SLOTS_PER_BUCKET)->amount.count);
	assert_int_equal(lost(), 0);
}

static int compare_hashes(const void *first, const void *second)
{
	uint64_t one = *(const uint64_t *)first, other = *(const uint64_t *)second;

	return (one > other) - (one < other);
}

/* Adjacent frames differ in bits that a weak hash might let cancel out. */
static void tells_similar_stacks_apart(void **state)
{
	static uint64_t hashes[32 * 32 * 33];
	uint64_t interp = image__get(image.interpreters, 0), flipped;
	uint64_t callee = image__allocate(&image, IMAGE_FRAME_BYTES);
	uint64_t caller = image__get(leaf, image.offsets.frame_previous);
	size_t used = 0;

	(void)state;
	image__set_frame(&image, image__get(interp, image.offsets.interp_tstate_head), callee);
	for (uint32_t bit = 0; bit < 32; bit++) {
		image__write_frame(&image, callee, leaf, CODE(1), 1u << bit, 0);
		for (uint32_t i = 0; i < 32 * 32; i++) {
			flipped = 1u << i / 32 | 1u << i % 32;
			if (i / 32 < i % 32)
				continue;
			image__write_frame(&image, leaf, caller, CODE(0), flipped, 0);
			hashes[used++] = kernel__sample().hash;
			image__write_frame(&image, leaf, caller, CODE(0) ^ flipped << 12, 0, 0);
			hashes[used++] = kernel__sample().hash;
		}
		kernel__drain();
	}
	qsort(hashes, used, sizeof(hashes[0]), compare_hashes);
	for (size_t i = 1; i < used; i++)
		assert_true(hashes[i] != hashes[i - 1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(defines_a_stack_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(defines_every_stack_again_in_each_epoch, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(separates_cpus_and_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(merges_threads_if_configured, set_up, tear_down),
		cmocka_unit_test_setup_teardown(defines_again_after_a_full_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(accounts_reused_slots_correctly, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counts_every_lost_sample, set_up, tear_down),
		cmocka_unit_test_setup_teardown(evicts_only_defined_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tells_similar_stacks_apart, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
