// SPDX-License-Identifier: BSD-2-Clause
/* Samples at tracepoints: what bpf/tracepoint.bpf.h reads, and which calls it counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "harness.h"

#define VERSION 0x030d0000
#define HANDLER 0xffffffff81000000ULL /* of interrupts */
#define OTHER	0xffffffff82000000ULL

static struct image image;
static const struct kernel_code handlers = { HANDLER, 0x100 };

/* A struct that the kernel passes by pointer. */
struct passed {
	__u8 before, small;
	__s16 number;
	__u32 bits; /* 3, 7 and 22 */
	__u64 large;
};

static int set_up(void **state)
{
	(void)state;
	harness__open_own(&image, VERSION, 1);
	kernel.task_registers.cs = kernel.registers.cs;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return harness__close(&image);
}

static struct amount all(void)
{
	return harness__counted(1);
}

/* Calls a tracepoint, which is read as TRACEPOINT says, with the pointer PASSED and NUMBER. */
static void call(const struct tracepoint *tracepoint, const struct passed *passed, __u64 number)
{
	__u64 arguments[] = { (__u64)passed, number };

	kernel__set_tracepoint(tracepoint, &handlers);
	kernel__call_tracepoint(arguments);
}

/* A member of BITS bits that begins at bit START of the struct. */
static struct tracepoint member(__u32 start, __u32 bits, bool is_signed)
{
	__u32 first = start % 8;

	return (struct tracepoint){ .value = { .is_member = 1,
					       .offset = start / 8,
					       .bytes = (first + bits + 7) / 8,
					       .left = 64 - first - bits,
					       .right = 64 - bits,
					       .is_signed = is_signed } };
}

static void each_call_counts_as_one(void **state)
{
	const struct tracepoint plain = { 0 };

	(void)state;
	call(&plain, NULL, 0);
	call(&plain, NULL, 0);
	assert_int_equal(all().count, 2);
	assert_int_equal(all().value, 2);
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.definitions[0]->depth, 1);
	kernel.tgid++;
	call(&plain, NULL, 0);
	assert_int_equal(all().count, 2);
}

static void a_member_gives_the_value(void **state)
{
	const struct passed passed = { .before = 0xff,
				       .small = 200,
				       .number = 1000,
				       .bits = 5 | 100 << 3 | 3000000U << 10,
				       .large = 1ULL << 40 };
	const struct {
		struct tracepoint read;
		__u64 value;
	} members[] = {
		{ member(8, 8, false), 200 },	    { member(16, 16, true), 1000 },
		{ member(32, 3, false), 5 },	    { member(35, 7, false), 100 },
		{ member(42, 22, false), 3000000 }, { member(64, 64, false), 1ULL << 40 },
	};
	__u64 sum = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		call(&members[i].read, &passed, 0);
		sum += members[i].value;
		assert_int_equal(all().value, sum);
	}
	assert_int_equal(all().count, sizeof(members) / sizeof(members[0]));
}

static void a_value_of_0_or_less_does_not_count(void **state)
{
	const struct passed passed = { .number = -1, .small = 0 };
	const struct tracepoint number = member(16, 16, true), small = member(8, 8, false);
	const struct tracepoint result = {
		.value = { .argument = 1, .bytes = 8, .is_signed = 1 },
	};

	(void)state;
	call(&number, &passed, 0);
	call(&small, &passed, 0);
	call(&result, NULL, -11);
	assert_int_equal(all().count, 0);
	call(&result, NULL, 11);
	assert_int_equal(all().value, 11);
}

static void only_calls_that_match_the_filter_count(void **state)
{
	struct tracepoint filtered = { .filter = { .argument = 1, .bytes = 8, .is_signed = 1 },
				       .filtered = 35 };

	(void)state;
	call(&filtered, NULL, 34);
	call(&filtered, NULL, 35);
	call(&filtered, NULL, -1);
	assert_int_equal(all().count, 1);
}

static void an_interrupt_has_no_stack(void **state)
{
	const __u64 stack[] = { HANDLER, HANDLER, OTHER, HANDLER + 0xff, OTHER };
	const struct tracepoint mixed = { .may_interrupt = 1 }, own = { 0 };

	(void)state;
	kernel.stack = stack;
	/* The first two frames are the BPF program's. */
	kernel.stack_depth = 3;
	call(&mixed, NULL, 0);
	assert_int_equal(kernel.definitions[0]->outcome, OUTCOME_PYTHON);
	kernel.stack_depth = 5;
	call(&mixed, NULL, 0);
	assert_int_equal(kernel.definition_count, 2);
	assert_int_equal(kernel.definitions[1]->outcome, OUTCOME_IN_INTERRUPT);
	assert_int_equal(kernel.definitions[1]->frames[0].kind, FRAME_REASON);
	call(&own, NULL, 0);
	assert_int_equal(kernel.definition_count, 2);
	assert_int_equal(all().count, 3);
}

/* Samples are lost only while another program uses the scratch. */
static void one_sample_is_taken_at_a_time(void **state)
{
	const struct tracepoint plain = { 0 };
	const struct event_counters *counter = &kernel__cpu_counters(0)->of[0];

	(void)state;
	kernel__claim(true);
	call(&plain, NULL, 0);
	kernel__sample();
	assert_int_equal(counter->busy, 2);
	assert_int_equal(counter->events, 0);
	assert_int_equal(all().count, 0);
	kernel__claim(false);
	call(&plain, NULL, 0);
	kernel__sample();
	assert_int_equal(counter->busy, 2);
	assert_int_equal(all().count, 2);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_call_counts_as_one),
		TEST(a_member_gives_the_value),
		TEST(a_value_of_0_or_less_does_not_count),
		TEST(only_calls_that_match_the_filter_count),
		TEST(an_interrupt_has_no_stack),
		TEST(one_sample_is_taken_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
