// SPDX-License-Identifier: BSD-2-Clause
/* The queue of requests, with a fake clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "push/queue.h"

#define SECOND 1000000000LL
#define EPOCH  (1700000000 * SECOND)

struct test {
	struct push_counts counts;
	struct push_queue *queue;
	struct push_moment now;
};

static const struct push_verdict delivered = { .action = PUSH_SETTLE, .outcome = PUSH_DELIVERED };
static const struct push_verdict again = { .action = PUSH_AGAIN };
static const struct push_verdict failed = { .action = PUSH_AGAIN_OR_FAIL };

static int set_up(void **state)
{
	const struct push_limits limits = { .bytes = 100, .age_max_ns = 3600 * SECOND };
	struct test *test = xcalloc(1, sizeof(*test));

	test->queue = push_queue__new(&limits, &test->counts, 12345);
	test->now = (struct push_moment){ 1000 * SECOND, EPOCH };
	*state = test;
	return 0;
}

/* Each request has one outcome, unless it is still WAITING. */
static void adds_up(const struct test *test, uint64_t waiting)
{
	uint64_t requests = waiting;

	for (int i = 0; i < PUSH_OUTCOME_COUNT; i++)
		requests += test->counts.outcomes[i].requests;
	assert_int_equal(requests, test->counts.handed.requests);
}

static int tear_down(void **state)
{
	struct test *test = *state;
	uint64_t samples = 0;

	push_queue__free(test->queue);
	adds_up(test, 0);
	for (int i = 0; i < PUSH_OUTCOME_COUNT; i++)
		samples += test->counts.outcomes[i].samples;
	assert_int_equal(samples, test->counts.handed.samples);
	assert_int_equal(test->counts.queued_bytes, 0);
	free(test);
	return 0;
}

/* Adds a request, which its number of SAMPLES identifies. */
static void add(struct test *test, size_t length, uint64_t samples)
{
	struct push_request *request = xcalloc(1, sizeof(*request));

	request->body = xmalloc(length);
	request->length = length;
	request->samples = samples;
	request->start_unix_ns = test->now.unix_ns;
	push_count__add(&test->counts.handed, samples);
	push_queue__add(test->queue, request);
}

static void pass(struct test *test, int64_t ns)
{
	test->now.monotonic_ns += ns;
	test->now.unix_ns += ns;
}

/* Takes a request and settles it.  Returns its samples; 0: none was due. */
static uint64_t take(struct test *test, const struct push_verdict *verdict)
{
	struct push_request *request = push_queue__take(test->queue, &test->now);
	uint64_t samples;

	if (!request)
		return 0;
	samples = request->samples;
	assert_null(push_queue__take(test->queue, &test->now));
	assert_true(push_queue__due(test->queue) == INT64_MAX);
	push_queue__settle(test->queue, request, verdict, &test->now);
	return samples;
}

/* Waits until a request is due.  Returns how long. */
static int64_t wait(struct test *test)
{
	int64_t due = push_queue__due(test->queue), waited = due - test->now.monotonic_ns;

	assert_true(due != INT64_MAX);
	if (waited <= 0)
		return 0;
	pass(test, waited - 1);
	assert_null(push_queue__take(test->queue, &test->now));
	pass(test, 1);
	return waited;
}

static void the_oldest_request_is_sent_first(void **state)
{
	struct test *test = *state;

	assert_int_equal(take(test, &delivered), 0);
	assert_true(push_queue__due(test->queue) == INT64_MAX);
	for (uint64_t i = 1; i <= 5; i++)
		add(test, 10, i);
	assert_int_equal(push_queue__length(test->queue), 5);
	assert_int_equal(test->counts.queued_bytes, 50);
	for (uint64_t i = 1; i <= 5; i++) {
		assert_int_equal(wait(test), 0);
		assert_int_equal(take(test, &delivered), i);
	}
	assert_int_equal(test->counts.outcomes[PUSH_DELIVERED].requests, 5);
	assert_int_equal(test->counts.outcomes[PUSH_DELIVERED].samples, 15);
}

static void pauses_grow_to_a_limit(void **state)
{
	struct test *test = *state;
	int64_t longest = PUSH_PAUSE_MIN_NS, sum = 0;

	add(test, 10, 1);
	for (int i = 0; i < 40; i++) {
		int64_t waited;

		assert_int_equal(take(test, &again), 1);
		waited = wait(test);
		assert_in_range(waited, longest / 2, longest);
		sum += i >= 10 ? waited : 0;
		longest = longest * 2 < PUSH_PAUSE_MAX_NS ? longest * 2 : PUSH_PAUSE_MAX_NS;
	}
	/* Half of a pause is random. */
	assert_in_range(sum / 30, PUSH_PAUSE_MAX_NS * 6 / 10, PUSH_PAUSE_MAX_NS * 9 / 10);
	assert_int_equal(take(test, &delivered), 1);
	/* After a success, the pauses are short again. */
	add(test, 10, 2);
	assert_int_equal(take(test, &again), 2);
	assert_in_range(wait(test), 1, PUSH_PAUSE_MIN_NS);
}

static void all_requests_wait_for_a_busy_backend(void **state)
{
	struct test *test = *state;

	add(test, 10, 1);
	add(test, 10, 2);
	assert_int_equal(take(test, &again), 1);
	add(test, 10, 3);
	assert_int_equal(take(test, &again), 0);
	assert_in_range(wait(test), 1, PUSH_PAUSE_MIN_NS);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(take(test, &delivered), i);
}

static void retry_after_is_respected_up_to_a_limit(void **state)
{
	const struct push_verdict later = { .action = PUSH_AGAIN, .retry_after_ns = 20 * SECOND };
	const struct push_verdict never = { .action = PUSH_AGAIN, .retry_after_ns = INT64_MAX };
	struct test *test = *state;

	add(test, 10, 1);
	assert_int_equal(take(test, &later), 1);
	assert_in_range(wait(test), 20 * SECOND, 21 * SECOND);
	assert_int_equal(take(test, &never), 1);
	assert_in_range(wait(test), PUSH_RETRY_AFTER_MAX_NS, PUSH_RETRY_AFTER_MAX_NS + SECOND);
}

static void a_failing_request_lets_others_pass(void **state)
{
	struct test *test = *state;
	int attempts = 1;

	add(test, 10, 1);
	add(test, 10, 2);
	assert_int_equal(take(test, &failed), 1);
	assert_int_equal(take(test, &delivered), 2);
	while (push_queue__length(test->queue)) {
		assert_in_range(wait(test), 1, PUSH_PAUSE_MAX_NS);
		assert_int_equal(take(test, &failed), 1);
		attempts++;
	}
	assert_int_equal(attempts, PUSH_FAILURES_MAX);
	assert_int_equal(test->counts.outcomes[PUSH_FAILED].samples, 1);
}

/* One request survives a minute of failures, with random pauses from SEED. */
static void outlive_a_minute_of_500(struct test *test, uint64_t seed)
{
	const struct push_limits limits = { .bytes = 100, .age_max_ns = 3600 * SECOND };
	int64_t minute = test->now.monotonic_ns + 60 * SECOND, longest = PUSH_PAUSE_MIN_NS;

	push_queue__free(test->queue);
	test->queue = push_queue__new(&limits, &test->counts, seed);
	add(test, 10, 1);
	while (test->now.monotonic_ns < minute) {
		assert_int_equal(take(test, &failed), 1);
		assert_int_equal(push_queue__length(test->queue), 1);
		assert_in_range(wait(test), longest / 2, longest);
		longest = longest * 2 < PUSH_PAUSE_MAX_NS ? longest * 2 : PUSH_PAUSE_MAX_NS;
	}
	assert_int_equal(take(test, &delivered), 1);
}

static void a_minute_of_500_loses_nothing(void **state)
{
	struct test *test = *state;
	int64_t longest = PUSH_PAUSE_MIN_NS, least = 0;

	for (uint64_t seed = 1; seed < 10000; seed++)
		outlive_a_minute_of_500(test, seed << 32);
	assert_int_equal(test->counts.outcomes[PUSH_DELIVERED].requests, 9999);
	/* Even the shortest possible pauses, which no seed makes, last a minute. */
	for (int i = 1; i < PUSH_FAILURES_MAX; i++) {
		least += longest / 2;
		longest = longest * 2 < PUSH_PAUSE_MAX_NS ? longest * 2 : PUSH_PAUSE_MAX_NS;
	}
	assert_true(least >= 60 * SECOND);
}

static void requests_can_be_added_behind_a_failing_one(void **state)
{
	struct test *test = *state;

	add(test, 10, 1);
	assert_int_equal(take(test, &failed), 1);
	add(test, 10, 2);
	assert_int_equal(take(test, &delivered), 2);
	add(test, 10, 3);
	wait(test);
	pass(test, SECOND);
	assert_int_equal(take(test, &delivered), 1);
	assert_int_equal(take(test, &delivered), 3);
	add(test, 10, 4);
	assert_int_equal(take(test, &delivered), 4);
}

/* A list of parts, one for each number in SAMPLES, up to 0. */
static struct push_request *make_parts(const struct test *test, const uint64_t *samples)
{
	struct push_request *first = NULL, **end = &first;

	for (; *samples; samples++) {
		*end = xcalloc(1, sizeof(**end));
		(*end)->length = 10;
		(*end)->samples = *samples;
		(*end)->start_unix_ns = test->now.unix_ns;
		end = &(*end)->next;
	}
	return first;
}

/* Parts are sent before all other requests, and each has its own outcome. */
static void parts_are_sent_in_place_of_the_whole(void **state)
{
	static const uint64_t parts[] = { 1, 2, 3, 0 };
	static const struct push_verdict refused = { .action = PUSH_SETTLE,
						     .outcome = PUSH_REFUSED };
	struct test *test = *state;

	add(test, 33, 6);
	add(test, 10, 7);
	push_queue__split(test->queue, push_queue__take(test->queue, &test->now),
			  make_parts(test, parts));
	assert_int_equal(push_queue__length(test->queue), 4);
	assert_int_equal(test->counts.queued_bytes, 40);
	adds_up(test, 4);
	assert_int_equal(take(test, &delivered), 1);
	assert_int_equal(take(test, &refused), 2);
	assert_int_equal(take(test, &again), 3);
	wait(test);
	assert_int_equal(take(test, &delivered), 3);
	assert_int_equal(take(test, &delivered), 7);
	assert_int_equal(test->counts.outcomes[PUSH_DELIVERED].samples, 11);
	assert_int_equal(test->counts.outcomes[PUSH_REFUSED].samples, 2);
	/* The same with no other request in the queue. */
	add(test, 33, 6);
	push_queue__split(test->queue, push_queue__take(test->queue, &test->now),
			  make_parts(test, parts));
	add(test, 10, 8);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(take(test, &delivered), i);
	assert_int_equal(take(test, &delivered), 8);
}

/* The rest of the request is still being sent. */
static void samples_that_are_left_out_are_counted_at_once(void **state)
{
	struct test *test = *state;
	struct body rest = { .bytes = xmalloc(20), .length = 20 }, nothing = { 0 };
	struct push_request *request;

	add(test, 33, 6);
	add(test, 10, 7);
	request = push_queue__take(test->queue, &test->now);
	push_queue__leave_out(test->queue, request, &rest, 2, PUSH_SERIES_LIMIT);
	assert_int_equal(test->counts.outcomes[PUSH_SERIES_LIMIT].samples, 4);
	assert_int_equal(test->counts.queued_bytes, 30);
	adds_up(test, 2);
	push_queue__settle(test->queue, request, &delivered, &test->now);
	assert_int_equal(test->counts.outcomes[PUSH_DELIVERED].samples, 2);
	/* The whole request is left out. */
	request = push_queue__take(test->queue, &test->now);
	push_queue__leave_out(test->queue, request, &nothing, 0, PUSH_SERIES_LIMIT);
	assert_int_equal(test->counts.outcomes[PUSH_SERIES_LIMIT].samples, 11);
	assert_int_equal(push_queue__length(test->queue), 0);
	add(test, 10, 8);
	assert_int_equal(take(test, &delivered), 8);
}

/* Otherwise the retries would begin anew for each part. */
static void parts_inherit_the_failures_of_the_whole(void **state)
{
	static const uint64_t parts[] = { 1, 2, 0 };
	struct test *test = *state;
	struct push_request *whole;

	add(test, 20, 3);
	for (int i = 1; i < PUSH_FAILURES_MAX; i++) {
		wait(test);
		whole = push_queue__take(test->queue, &test->now);
		assert_false(push_queue__is_final(whole, &failed));
		push_queue__settle(test->queue, whole, &failed, &test->now);
	}
	wait(test);
	whole = push_queue__take(test->queue, &test->now);
	assert_true(push_queue__is_final(whole, &failed));
	push_queue__split(test->queue, whole, make_parts(test, parts));
	assert_int_equal(take(test, &failed), 1);
	assert_int_equal(take(test, &failed), 2);
	assert_int_equal(push_queue__length(test->queue), 0);
	assert_int_equal(test->counts.outcomes[PUSH_FAILED].requests, 2);
}

static void the_oldest_requests_are_evicted(void **state)
{
	struct test *test = *state;
	struct push_request *first;

	for (uint64_t i = 1; i <= 10; i++)
		add(test, 10, i);
	first = push_queue__take(test->queue, &test->now);
	add(test, 25, 11);
	/* The request that is being sent stays. */
	assert_int_equal(first->samples, 1);
	assert_int_equal(test->counts.outcomes[PUSH_QUEUE_FULL].samples, 2 + 3 + 4);
	assert_int_equal(test->counts.queued_bytes, 95);
	push_queue__settle(test->queue, first, &again, &test->now);
	wait(test);
	assert_int_equal(take(test, &delivered), 1);
	assert_int_equal(take(test, &delivered), 5);
	/* A request that is larger than the queue. */
	add(test, 101, 12);
	assert_int_equal(push_queue__length(test->queue), 0);
	adds_up(test, 0);
	add(test, 100, 13);
	assert_int_equal(take(test, &delivered), 13);
}

static void requests_that_are_too_old_are_not_sent(void **state)
{
	struct test *test = *state;

	add(test, 10, 1);
	pass(test, 1800 * SECOND);
	add(test, 10, 2);
	pass(test, 1800 * SECOND + 1);
	add(test, 10, 4);
	assert_int_equal(take(test, &delivered), 2);
	assert_int_equal(test->counts.outcomes[PUSH_TOO_OLD].samples, 1);
	assert_int_equal(take(test, &delivered), 4);
}

static void requests_left_at_the_end_are_counted(void **state)
{
	struct test *test = *state;

	add(test, 10, 1);
	add(test, 10, 2);
	push_queue__take(test->queue, &test->now);
	adds_up(test, 2);
	push_queue__free(test->queue);
	test->queue = NULL;
	assert_int_equal(test->counts.outcomes[PUSH_UNKNOWN].samples, 1);
	assert_int_equal(test->counts.outcomes[PUSH_ENDED].samples, 2);
}

static void outcomes_have_names(void **state)
{
	(void)state;
	assert_string_equal(push_outcome__text(PUSH_DELIVERED), "delivered");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_oldest_request_is_sent_first),
		TEST(pauses_grow_to_a_limit),
		TEST(all_requests_wait_for_a_busy_backend),
		TEST(retry_after_is_respected_up_to_a_limit),
		TEST(a_failing_request_lets_others_pass),
		TEST(a_minute_of_500_loses_nothing),
		TEST(requests_can_be_added_behind_a_failing_one),
		TEST(parts_are_sent_in_place_of_the_whole),
		TEST(samples_that_are_left_out_are_counted_at_once),
		TEST(parts_inherit_the_failures_of_the_whole),
		TEST(the_oldest_requests_are_evicted),
		TEST(requests_that_are_too_old_are_not_sent),
		TEST(requests_left_at_the_end_are_counted),
		cmocka_unit_test(outcomes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
