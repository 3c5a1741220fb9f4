// SPDX-License-Identifier: BSD-2-Clause
/* Which stacks are in doubt after code objects were replaced, and how BPF tells these apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "code_bench.h"

#define MINOR_WITHOUT_VERSION 11
#define QUIET_CHECKS	      50

/* At these rates, with one-frame stacks, BPF identifies code objects without a version wholly, or
 * by their words. */
#define WHOLLY_HZ 10000
#define WORDS_HZ  50000

/* Here identification would cost too much, with or without versions, even for a while. */
#define ANY_MORE_HZ 10000000

/* Bits of an identity.  If one is flipped, the identity is another code object's. */
#define OTHER_WORDS   (1ULL << 40)
#define OTHER_OBJECTS 2

/* The identity of the present code object, as BPF reads it. */
static uint64_t current_identity(const struct bench *bench, int number)
{
	return code_identity__read(&bench->target, (uintptr_t)bench->codes[number].object);
}

static int set_up_without_version(void **state)
{
	return set_up_minor(state, MINOR_WITHOUT_VERSION);
}

static void doubts_replaced_code(void **state)
{
	struct bench *bench = *state;
	uint32_t all = define(bench, 0, 2, 0), two = define(bench, 2, 2, 0);

	assert_false(check(bench));
	assert_false(doubts(bench, all));
	replace_code(bench, 1, 7);
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	assert_true(doubts(bench, all));
	assert_false(doubts(bench, two));
	symbolizer__settle(bench->symbolizer);
	assert_false(doubts(bench, all));
}

/* A code object may be replaced during a check, after it was read.  Its samples wait for the next
 * check, and are in doubt then. */
static void doubts_samples_that_came_during_a_check(void **state)
{
	struct bench *bench = *state;
	uint32_t zero = define(bench, 0, 0, 0), one = define(bench, 1, 1, 0);

	assert_false(check(bench));
	replace_code(bench, 0, 7);
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	assert_true(doubts(bench, zero));
	assert_false(doubts(bench, one));
	symbolizer__settle(bench->symbolizer);
	replace_code(bench, 1, 7);
	check(bench);
	assert_true(doubts(bench, one));
	symbolizer__settle(bench->symbolizer);
	/* Now BPF identifies the code objects in each sample. */
	replace_code(bench, 1, 8);
	check(bench);
	assert_false(doubts(bench, one));
}

/* Another code object may have come to the address, and gone with the page. */
static void doubts_unmapped_code(void **state)
{
	struct bench *bench = *state;
	uint32_t one = define(bench, 1, 1, 0), zero;
	char *page = mmap(NULL, FAKE_CODE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, bench->codes[0].object, FAKE_CODE_BYTES);
	zero = define_at(bench, SERIAL, &(uint64_t){ (uintptr_t)page }, 1, 0);
	assert_string_equal(leaf_of(bench, zero), "zero");
	assert_false(check(bench));
	munmap(page, FAKE_CODE_BYTES);
	check(bench);
	assert_true(doubts(bench, zero));
	assert_false(doubts(bench, one));
}

/* The other process has the same functions, and nothing is replaced in it. */
static void does_not_doubt_another_process(void **state)
{
	struct bench *bench = *state;
	pid_t pid = fork();
	uint32_t stack;

	if (!pid) {
		pause();
		_exit(0);
	}
	bench->other = bench->target;
	bench->other.process.pid = pid;
	bench->other.key.serial = SERIAL + 1;
	symbolizer__add_target(bench->symbolizer, &bench->other);
	stack = define(bench, 0, 0, 0);
	assert_int_equal(define_in(bench, SERIAL + 1, 0, 0, 0), stack);
	replace_code(bench, 0, 7);
	check(bench);
	assert_false(doubts(bench, stack));
	define(bench, 0, 0, 0);
	assert_true(doubts(bench, stack));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* While BPF identifies the code objects in each sample, nothing is in doubt. */
static void does_not_doubt_identified_code(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, identity_of(bench, 0, 42));

	replace_code(bench, 0, 7);
	assert_true(check(bench));
	symbolizer__settle(bench->symbolizer);
	stack = define(bench, 0, 0, identity_of(bench, 0, 7));
	assert_false(check(bench));
	replace_code(bench, 0, 8);
	check(bench);
	assert_int_equal(bench->identify, -1);
	assert_false(doubts(bench, stack));
}

/* Another interpreter counts its versions anew, and may reuse the same addresses. */
static void doubts_code_with_the_same_version(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, identity_of(bench, 0, 42));

	assert_false(check(bench));
	rename_code(bench, 0, "other");
	assert_true(check(bench));
	assert_true(bench->target.versions_repeat);
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	assert_true(doubts(bench, stack));
	symbolizer__settle(bench->symbolizer);
	/* Now versions are not trusted: BPF identifies code objects wholly. */
	rename_code(bench, 0, "third");
	check(bench);
	symbolizer__settle(bench->symbolizer);
	rename_code(bench, 0, "fourth");
	check(bench);
	assert_false(doubts(bench, define(bench, 0, 0, 0)));
}

/* A freed code object keeps its words, but the memory of its name may already be reused. */
static void freed_code_does_not_make_versions_repeat(void **state)
{
	struct bench *bench = *state;
	struct fake_code *fake = &bench->codes[0];

	define(bench, 0, 0, identity_of(bench, 0, 42));
	assert_false(check(bench));
	fake_put(fake->object, fake->offsets.object_type - 8, 0, 8);
	rename_code(bench, 0, "other");
	assert_true(check(bench));
	assert_false(bench->target.versions_repeat);
}

/* The words were read before the code object was replaced, the rest of the identity after it. */
static void a_torn_identity_does_not_make_versions_repeat(void **state)
{
	struct bench *bench = *state;
	uint64_t torn;

	define(bench, 0, 0, identity_of(bench, 0, 42));
	rename_code(bench, 0, "other");
	torn = identity_of(bench, 0, 42);
	replace_code(bench, 0, 7);
	define(bench, 0, 0, torn);
	assert_false(bench->target.versions_repeat);
}

/* From that sample on, BPF identifies all code objects wholly. */
static void does_not_doubt_code_of_several_interpreters(void **state)
{
	struct bench *bench = *state;
	uint32_t stack;

	symbolizer__free(bench->symbolizer);
	bench->symbolizer = symbolizer__new(bench->profile, &bench->naming);
	symbolizer__add_target(bench->symbolizer, &bench->target);
	bench->several = true;
	stack = define(bench, 0, 0, identity_of(bench, 0, 42));
	assert_true(bench->target.versions_repeat);
	rename_code(bench, 0, "other");
	check(bench);
	assert_false(doubts(bench, stack));
}

/* A starting process makes code objects, runs them once and throws them away. */
static void does_not_doubt_a_new_process(void **state)
{
	struct bench *bench = *state;
	uint32_t stack;

	symbolizer__free(bench->symbolizer);
	bench->symbolizer = symbolizer__new(bench->profile, &bench->naming);
	symbolizer__add_target(bench->symbolizer, &bench->target);
	stack = define(bench, 0, 0, identity_of(bench, 0, 42));
	replace_code(bench, 0, 7);
	assert_false(check(bench));
	assert_false(doubts(bench, stack));
	assert_int_equal(bench->identify, -1);
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

static void identifies_until_it_is_quiet(void **state)
{
	struct bench *bench = *state;

	define(bench, 0, 0, 0);
	replace_code(bench, 0, 7);
	assert_true(check(bench));
	define(bench, 0, 0, identity_of(bench, 0, 7));
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

/* Identification notices a code object that comes and goes between two checks, even one with the
 * same words. */
static void identifies_wholly_at_low_rates(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);

	bench->profile->rate_hz = WHOLLY_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	assert_false(check(bench));
	define(bench, 0, 0, current_identity(bench, 0) ^ OTHER_OBJECTS);
	assert_false(doubts(bench, stack));
	for (int i = 0; i < 2 * QUIET_CHECKS; i++) {
		check(bench);
		assert_int_equal(bench->identify, -1);
	}
}

/* Stacks that were defined before the replacement have the old name. */
static void defines_stacks_anew_if_identification_costs_too_much(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, identity_of(bench, 0, 42));

	bench->profile->rate_hz = ANY_MORE_HZ;
	assert_false(check(bench));
	replace_code(bench, 0, 7);
	assert_true(check(bench));
	assert_int_equal(bench->identify, -1);
	assert_true(doubts(bench, stack));
	symbolizer__settle(bench->symbolizer);
	assert_false(check(bench));
}

/* At a reused address, two code objects may take turns, and all checks may see the same one. */
static void doubts_reused_addresses_for_a_while(void **state)
{
	struct bench *bench = *state;
	uint32_t zero, one = define(bench, 1, 1, identity_of(bench, 1, 42));

	bench->profile->rate_hz = ANY_MORE_HZ;
	define(bench, 0, 0, identity_of(bench, 0, 42));
	replace_code(bench, 0, 7);
	check(bench);
	for (int i = 0; i < QUIET_CHECKS; i++) {
		symbolizer__settle(bench->symbolizer);
		zero = define(bench, 0, 0, identity_of(bench, 0, 7));
		assert_false(check(bench));
		assert_int_equal(doubts(bench, zero), i < QUIET_CHECKS - 1);
		assert_false(doubts(bench, one));
	}
}

/* A code object with the same words may have been there in between. */
static void doubts_code_identified_by_words(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);

	bench->profile->rate_hz = WORDS_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
	assert_false(check(bench));
	assert_int_equal(bench->identify, -1);
	/* A definition shows the replacement. */
	define(bench, 0, 0, current_identity(bench, 0) ^ OTHER_WORDS);
	assert_true(doubts(bench, stack));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
	bench->profile->rate_hz = QUICK_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

/* This process is sampled at a quarter of the rate. */
static void uses_the_lowered_rate(void **state)
{
	struct bench *bench = *state;

	define(bench, 0, 0, 0);
	bench->target.rate_shift = 2;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
}

/* BPF could not read the names and lines at the sample: the identity has the words only. */
static void an_identity_of_words_only_is_enough(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);
	uint64_t words = (uint64_t)code_identity_words(current_identity(bench, 0)) << 32;

	assert_int_equal(define(bench, 0, 0, words), stack);
	assert_int_not_equal(define(bench, 0, 0, words ^ OTHER_WORDS), stack);
}

static void a_version_identifies_wholly_at_the_cost_of_words(void **state)
{
	struct bench *bench = *state;

	define(bench, 0, 0, 0);
	bench->profile->rate_hz = WORDS_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	define(bench, 0, 0, identity_of(bench, 0, 7));
	for (int i = 0; i < 2 * QUIET_CHECKS; i++) {
		check(bench);
		assert_int_equal(bench->identify, -1);
	}
}

/* From 3.14 on, interpreters count freed code objects.  One of those may have been at the address
 * in between. */
static void identifies_once_code_was_freed(void **state)
{
	struct bench *bench = *state;
	struct offsets *offsets = &bench->target.runtime.offsets;
	struct {
		uint64_t next, generation;
	} interpreter = { 0, 5 };
	uint64_t head = (uintptr_t)&interpreter;

	symbolizer__free(bench->symbolizer);
	offsets->interp_next = 0;
	offsets->interp_code_generation = 8;
	bench->target.runtime.interpreters = (uintptr_t)&head;
	bench->symbolizer = symbolizer__new(bench->profile, &bench->naming);
	add_trusted(bench);
	define(bench, 0, 0, 0);
	assert_false(check(bench));
	interpreter.generation++;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(check(bench));
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
}

/* A frequent event raises the cost even if the clock's rate is low, but only while it lasts. */
static void uses_the_rate_of_all_events(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);

	bench->profile->rate_hz = 10;
	bench->profile->events[1] =
		(struct profile_event){ .name = "page-faults", .unit = "count", .period = 1 };
	bench->profile->event_count = 2;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
	symbolizer__see(bench->symbolizer, bench->thread, stack, 1, 1000000000000);
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_NOT);
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_WHOLLY);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_WITHOUT_VERSION(name) \
	cmocka_unit_test_setup_teardown(name, set_up_without_version, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(doubts_replaced_code),
		TEST(doubts_code_with_the_same_version),
		TEST(freed_code_does_not_make_versions_repeat),
		TEST(a_torn_identity_does_not_make_versions_repeat),
		TEST(does_not_doubt_code_of_several_interpreters),
		TEST(does_not_doubt_identified_code),
		TEST(does_not_doubt_a_new_process),
		TEST(identifies_until_it_is_quiet),
		TEST(defines_stacks_anew_if_identification_costs_too_much),
		TEST(doubts_reused_addresses_for_a_while),
		TEST(doubts_samples_that_came_during_a_check),
		TEST(doubts_unmapped_code),
		TEST(does_not_doubt_another_process),
		TEST(a_version_identifies_wholly_at_the_cost_of_words),
		TEST_WITHOUT_VERSION(identifies_wholly_at_low_rates),
		TEST_WITHOUT_VERSION(doubts_code_identified_by_words),
		TEST_WITHOUT_VERSION(uses_the_lowered_rate),
		TEST_WITHOUT_VERSION(an_identity_of_words_only_is_enough),
		TEST(identifies_once_code_was_freed),
		TEST(uses_the_rate_of_all_events),
	};
#undef TEST
#undef TEST_WITHOUT_VERSION

	return cmocka_run_group_tests(tests, NULL, NULL);
}
