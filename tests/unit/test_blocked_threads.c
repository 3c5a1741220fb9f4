// SPDX-License-Identifier: BSD-2-Clause
/* A stack that user space walked counts only if its thread slept meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "sampling/blocked_list.h"
#include "sampling/blocked_threads.h"
#include "sampling/outside_walker.h"
#include "wrap.h"

#define THREADS 3
#define SINCE	1000
#define NOW	2000
#define TID(i)	(100 + (i))

/* The threads as BPF lists them. */
static struct thread {
	struct blocked_thread as_listed, as_proved;
	bool runs;    /* when it is listed again */
	bool has_run; /* before it is entered */
	bool entered, withdrawn;
	int64_t since;
} threads[THREADS];

static unsigned int thread_count, lists, codes_forgotten, walked;
static struct definition defined[THREADS];
static unsigned int definitions;
static struct event_counters counted;
static struct bucket buckets[2 * STACK_BUCKETS];
static struct slots *slots;
static struct blocked_threads *blocked;

WRAP(int, blocked_list__open, struct pybpfprof_bpf *bpf, uint32_t cpus, struct blocked_list **list)
{
	(void)bpf;
	assert_int_equal(cpus, 1);
	*list = NULL;
	return 0;
}

WRAP(void, blocked_list__close, struct blocked_list *list)
{
	assert_null(list);
}

WRAP(ssize_t, blocked_list__read, struct blocked_list *list, bool entered,
     struct blocked_thread **result, size_t *capacity)
{
	ssize_t count = 0;

	(void)list;
	lists += !entered;
	*result = xgrow(*result, capacity, THREADS, sizeof(**result));
	/* BPF may list them in any order. */
	for (unsigned int i = thread_count; i-- > 0;)
		if (threads[i].entered == entered && !(entered && threads[i].runs))
			(*result)[count++] = entered ? threads[i].as_proved : threads[i].as_listed;
	return count;
}

WRAP(bool, blocked_list__describe, const struct blocked_list *list,
     const struct blocked_thread *thread, struct target *target, struct layout *layout,
     struct outside_settings *settings)
{
	(void)list;
	memset(target, 0, sizeof(*target));
	memset(layout, 0, sizeof(*layout));
	memset(settings, 0, sizeof(*settings));
	return thread->serial;
}

static unsigned int number_of(const struct blocked_thread *thread)
{
	return thread->kernel_tid - TID(0);
}

WRAP(bool, blocked_list__enter, struct blocked_list *list, const struct blocked_thread *thread,
     int64_t since, uint64_t hash, uint32_t *slot)
{
	struct thread *entered = &threads[number_of(thread)];

	(void)list;
	assert_int_equal(hash, thread->kernel_tid);
	if (entered->has_run)
		return false;
	entered->entered = true;
	entered->since = since;
	*slot = number_of(thread);
	return true;
}

WRAP(bool, blocked_list__is_full, const struct blocked_list *list)
{
	(void)list;
	return false;
}

WRAP(void, blocked_list__count, struct blocked_list *list, uint32_t slot,
     struct definition *definition)
{
	(void)list;
	definition->cpu = 1;
	definition->slot = slot;
}

WRAP(void, blocked_list__withdraw, struct blocked_list *list, const struct blocked_thread *thread,
     uint32_t slot)
{
	(void)list;
	assert_int_equal(slot, number_of(thread));
	threads[number_of(thread)].withdrawn = true;
}

/* Every thread has a stack without frames. */
WRAP(bool, outside_walker__walk, const struct blocked_thread *thread, struct outside_walk *walk)
{
	const struct definition definition = { .kind = RECORD_DEFINITION,
					       .hash = thread->kernel_tid,
					       .tgid = thread->kernel_tgid,
					       .tid = thread->kernel_tid };
	const uint64_t size = DEFINITION_HEADER_BYTES;

	walked++;
	walk->records = xgrow(walk->records, &walk->capacity, walk->bytes + sizeof(size) + size, 1);
	memcpy(walk->records + walk->bytes, &size, sizeof(size));
	memcpy(walk->records + walk->bytes + sizeof(size), &definition, size);
	walk->bytes += sizeof(size) + size;
	walk->hash = thread->kernel_tid;
	walk->outcome = OUTCOME_PYTHON;
	return true;
}

WRAP(void, outside_walker__forget_codes, void)
{
	codes_forgotten++;
}

static uint64_t define(void *context, const struct definition *definition)
{
	(void)context;
	memcpy(&defined[definitions++], definition, DEFINITION_HEADER_BYTES);
	return definitions;
}

static int set_up(void **state)
{
	const struct sampler_sink sink = { .define = define };

	(void)state;
	memset(threads, 0, sizeof(threads));
	memset(&counted, 0, sizeof(counted));
	thread_count = THREADS;
	for (unsigned int i = 0; i < THREADS; i++) {
		threads[i].as_listed = (struct blocked_thread){ .serial = 1,
								.start_time = 5,
								.switches = 7,
								.state = 1,
								.kernel_tgid = 99,
								.kernel_tid = TID(i),
								.tgid = 9,
								.tid = 10 + i };
		threads[i].as_proved = threads[i].as_listed;
	}
	slots = slots__new(&sink, buckets, 2);
	blocked = blocked_threads__new(NULL, 1, slots, &counted);
	lists = codes_forgotten = walked = definitions = 0;
	blocked_threads__begin(blocked, SINCE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	blocked_threads__free(blocked);
	slots__free(slots);
	return 0;
}

/* Works until all threads are walked: a slow machine needs several slices. */
static void work(uint64_t puts, int64_t now)
{
	do
		blocked_threads__work(blocked, puts, now);
	while (blocked_threads__due(blocked) < INT64_MAX);
}

static void threads_that_sleep_count(void **state)
{
	(void)state;
	work(1, NOW);
	assert_int_equal(definitions, THREADS);
	assert_int_equal(counted.events, THREADS);
	assert_int_equal(counted.outcomes[OUTCOME_PYTHON], THREADS);
	for (unsigned int i = 0; i < THREADS; i++) {
		assert_int_equal(threads[i].since, SINCE);
		assert_false(threads[i].withdrawn);
		assert_int_equal(defined[i].cpu, 1);
		assert_int_equal(defined[i].tgid, 9);
		assert_int_equal(defined[i].tid, 10 + defined[i].slot);
		assert_int_equal(defined[i].hash, TID(defined[i].slot));
	}
	assert_int_equal(codes_forgotten, 0);
}

static void only_the_second_counts(void)
{
	work(1, NOW);
	assert_int_equal(walked, THREADS);
	assert_int_equal(definitions, 1);
	assert_int_equal(defined[0].hash, TID(1));
	assert_int_equal(counted.events, 1);
	assert_true(codes_forgotten > 0);
}

static void a_thread_that_ran_meanwhile_does_not_count(void **state)
{
	(void)state;
	threads[0].as_proved.switches++;
	threads[2].runs = true;
	only_the_second_counts();
	assert_true(threads[0].withdrawn && threads[2].withdrawn);
	assert_false(threads[1].withdrawn);
}

static void a_thread_in_another_sleep_does_not_count(void **state)
{
	(void)state;
	threads[0].as_proved.state = 2;
	threads[2].as_proved.start_time++;
	only_the_second_counts();
	assert_true(threads[0].withdrawn && threads[2].withdrawn);
}

/* BPF has entered a wait for it at a switch. */
static void a_thread_with_its_own_wait_keeps_it(void **state)
{
	(void)state;
	threads[0].has_run = threads[2].has_run = true;
	only_the_second_counts();
	assert_false(threads[0].withdrawn || threads[2].withdrawn);
}

static void threads_of_a_former_target_are_not_walked(void **state)
{
	(void)state;
	threads[0].as_listed.serial = 0;
	work(1, NOW);
	assert_int_equal(walked, THREADS - 1);
	assert_int_equal(definitions, THREADS - 1);
}

static void threads_are_listed_again_after_a_new_target(void **state)
{
	(void)state;
	thread_count = 1;
	work(1, NOW);
	assert_int_equal(lists, 1);
	work(1, NOW);
	assert_int_equal(lists, 1);
	thread_count = THREADS;
	/* Not at once: lists have a pause between them. */
	blocked_threads__work(blocked, 2, NOW);
	assert_in_range(blocked_threads__due(blocked), NOW + 1, NOW + 1000000000);
	assert_int_equal(lists, 1);
	work(2, NOW + 1000000000);
	assert_int_equal(lists, 2);
	assert_int_equal(definitions, THREADS);
	assert_int_equal(threads[0].since, SINCE);
	/* The new target is sampled from that list on. */
	assert_int_equal(threads[1].since, NOW + 1000000000);
}

static void nothing_is_walked_before_it_begins(void **state)
{
	struct blocked_threads *idle = blocked_threads__new(NULL, 1, slots, &counted);

	(void)state;
	blocked_threads__work(idle, 1, NOW);
	assert_int_equal(lists, 0);
	assert_int_equal(blocked_threads__due(idle), INT64_MAX);
	blocked_threads__free(idle);
	blocked_threads__work(NULL, 1, NOW);
	assert_int_equal(blocked_threads__due(NULL), INT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads_that_sleep_count),
		TEST(a_thread_that_ran_meanwhile_does_not_count),
		TEST(a_thread_in_another_sleep_does_not_count),
		TEST(a_thread_with_its_own_wait_keeps_it),
		TEST(threads_of_a_former_target_are_not_walked),
		TEST(threads_are_listed_again_after_a_new_target),
		TEST(nothing_is_walked_before_it_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
