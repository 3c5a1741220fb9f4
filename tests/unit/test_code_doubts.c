// SPDX-License-Identifier: BSD-2-Clause
/* What is in doubt where code objects are replaced by others, and how these are told apart. */
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

/* With stacks of one frame: code objects without a version are told apart wholly, by their words,
 * not at all. */
#define WHOLLY_HZ 10000
#define WORDS_HZ  50000

/* With or without one: what tells them apart would take more than it ever may. */
#define ANY_MORE_HZ 10000000

/* Of an identity: what makes it another one's. */
#define OTHER_WORDS   (1ULL << 40)
#define OTHER_OBJECTS 2

/* Of what is there, as the kernel finds it. */
static uint64_t current_identity(const struct bench *bench, int number)
{
	return code_identity__read(&bench->target, (uintptr_t)bench->codes[number].object);
}

static int set_up_without_version(void **state)
{
	return set_up_minor(state, MINOR_WITHOUT_VERSION);
}

static void doubts_what_was_replaced(void **state)
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

/* It was replaced after it was looked at, before the kernel was told: its samples have waited. */
static void doubts_what_came_during_a_check(void **state)
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
	/* By now all of them are told apart. */
	replace_code(bench, 1, 8);
	check(bench);
	assert_false(doubts(bench, one));
}

/* What came to its address may have gone with it. */
static void doubts_what_is_unmapped(void **state)
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

/* A process with the same functions, in which nothing is replaced. */
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

/* As long as each sample is told apart by what was there, nothing is in doubt. */
static void does_not_doubt_what_is_told_apart(void **state)
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

/* Another interpreter's, which counts its versions anew and has the same addresses. */
static void doubts_what_has_the_same_version(void **state)
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
	/* By now they are told apart by what they are. */
	rename_code(bench, 0, "third");
	check(bench);
	symbolizer__settle(bench->symbolizer);
	rename_code(bench, 0, "fourth");
	check(bench);
	assert_false(doubts(bench, define(bench, 0, 0, 0)));
}

/* It says still what it was, but its name was freed with it, and is another's. */
static void does_not_take_what_was_freed_for_another_one(void **state)
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

/* The words were read before it was replaced, the rest after that. */
static void does_not_take_what_was_read_in_part_for_another_one(void **state)
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

/* From that sample on, all are told apart. */
static void does_not_doubt_where_several_interpreters_were_seen(void **state)
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

/* What a start makes, runs and throws away. */
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

static void tells_apart_until_it_is_quiet(void **state)
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

/* What comes and goes between two checks, with all addresses of what was there before. */
static void tells_apart_wholly_at_low_rates(void **state)
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

/* Stacks that were defined before have the name of what was there. */
static void defines_anew_what_cannot_be_told_apart(void **state)
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

/* There two may have taken turns, and the same one be seen each time. */
static void doubts_for_a_while_what_cannot_be_told_apart(void **state)
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

/* There may have been one in between that had the same words. */
static void doubts_what_is_told_by_words(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);

	bench->profile->rate_hz = WORDS_HZ;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
	assert_false(check(bench));
	assert_int_equal(bench->identify, -1);
	/* From a definition. */
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

/* One in four interruptions is a sample of this process. */
static void goes_by_the_lowered_rate(void **state)
{
	struct bench *bench = *state;

	define(bench, 0, 0, 0);
	bench->target.rate_shift = 2;
	assert_true(check(bench));
	assert_int_equal(bench->identify, IDENTIFIED_BY_WORDS);
}

/* What its names and lines are could not be read when it was sampled. */
static void tells_by_words_what_has_no_more(void **state)
{
	struct bench *bench = *state;
	uint32_t stack = define(bench, 0, 0, 0);
	uint64_t words = (uint64_t)code_identity_words(current_identity(bench, 0)) << 32;

	assert_int_equal(define(bench, 0, 0, words), stack);
	assert_int_not_equal(define(bench, 0, 0, words ^ OTHER_WORDS), stack);
}

static void a_version_says_all_in_one_read(void **state)
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

/* From 3.14 on: what was freed may have taken turns with what is there again. */
static void tells_apart_once_code_was_freed(void **state)
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

/* At a low rate of the clock, too, if another event comes often: but only while it does. */
static void goes_by_the_rate_of_all_events(void **state)
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
		TEST(doubts_what_was_replaced),
		TEST(doubts_what_has_the_same_version),
		TEST(does_not_take_what_was_freed_for_another_one),
		TEST(does_not_take_what_was_read_in_part_for_another_one),
		TEST(does_not_doubt_where_several_interpreters_were_seen),
		TEST(does_not_doubt_what_is_told_apart),
		TEST(does_not_doubt_a_new_process),
		TEST(tells_apart_until_it_is_quiet),
		TEST(defines_anew_what_cannot_be_told_apart),
		TEST(doubts_for_a_while_what_cannot_be_told_apart),
		TEST(doubts_what_came_during_a_check),
		TEST(doubts_what_is_unmapped),
		TEST(does_not_doubt_another_process),
		TEST(a_version_says_all_in_one_read),
		TEST_WITHOUT_VERSION(tells_apart_wholly_at_low_rates),
		TEST_WITHOUT_VERSION(doubts_what_is_told_by_words),
		TEST_WITHOUT_VERSION(goes_by_the_lowered_rate),
		TEST_WITHOUT_VERSION(tells_by_words_what_has_no_more),
		TEST(tells_apart_once_code_was_freed),
		TEST(goes_by_the_rate_of_all_events),
	};
#undef TEST
#undef TEST_WITHOUT_VERSION

	return cmocka_run_group_tests(tests, NULL, NULL);
}
