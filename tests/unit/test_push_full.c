// SPDX-License-Identifier: BSD-2-Clause
/* Label sets that a backend had no room for, with a fake clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "push/parts.h"
#include "push_window.h"

#define NOW 1000000000LL

static void a_label_set_is_left_out_for_a_while(void **state)
{
	struct full_labels full = { 0 };

	(void)state;
	assert_true(full_labels__is_empty(&full, NOW));
	full_labels__add(&full, "a", NOW);
	full_labels__add(&full, "b", NOW + 1);
	/* To add it again does not prolong its time. */
	full_labels__add(&full, "a", NOW + 2);
	assert_true(full_labels__has(&full, "a", NOW + FULL_LABELS_NS - 1));
	assert_false(full_labels__has(&full, "", NOW));
	assert_false(full_labels__has(&full, "ab", NOW));
	assert_false(full_labels__has(&full, "a", NOW + FULL_LABELS_NS));
	assert_true(full_labels__has(&full, "b", NOW + FULL_LABELS_NS));
	assert_true(full_labels__is_empty(&full, NOW + FULL_LABELS_NS + 1));
	assert_int_equal(full.bytes, 0);
}

/* A machine may have any number of services. */
static void memory_has_a_limit(void **state)
{
	struct full_labels full = { 0 };
	char labels[1001];

	(void)state;
	for (int i = 0; i < 2000; i++) {
		snprintf(labels, sizeof(labels), "%01000d", i);
		full_labels__add(&full, labels, NOW);
		assert_true(full_labels__has(&full, labels, NOW));
		assert_in_range(full.bytes, 1000, FULL_LABELS_BYTES_MAX);
	}
	/* The oldest sets were forgotten. */
	snprintf(labels, sizeof(labels), "%01000d", 0);
	assert_false(full_labels__has(&full, labels, NOW));
	snprintf(labels, sizeof(labels), "%01000d", 1500);
	assert_true(full_labels__has(&full, labels, NOW));
	full_labels__clear(&full);
	assert_int_equal(full.bytes, 0);
	assert_true(full_labels__is_empty(&full, NOW));
}

static void take_request(void *context, struct body *body, uint64_t samples)
{
	struct push_request *request = context;

	assert_null(request->body);
	request->body = body->bytes;
	request->length = body->length;
	request->samples = samples;
}

/* The number of series in a request, all their samples, and the first series alone. */
struct series {
	size_t count;
	uint64_t samples;
	struct push_request first;
};

static enum push_place place_first_alone(void *context, const char *labels, uint64_t samples)
{
	struct series *series = context;

	(void)labels;
	series->samples += samples;
	return series->count++ ? PUSH_NOWHERE : PUSH_ALONE;
}

static void take_first(void *context, struct body *body, uint64_t samples)
{
	struct series *series = context;

	take_request(&series->first, body, samples);
}

static struct series series_of(const struct push_backend *backend, const void *bytes, size_t length)
{
	struct series series = { 0 };

	if (length)
		backend->split(bytes, length, place_first_alone, take_first, &series);
	return series;
}

/* Leaves out one series after another until none is left. */
static void leave_out_all(const struct push_backend *backend, const struct push_request *request,
			  struct full_labels *full)
{
	struct series left = series_of(backend, request->body, request->length);

	assert_int_equal(left.count, 3);
	for (size_t count = 3; count--;) {
		struct body rest;
		uint64_t samples;

		assert_true(push_parts__note(backend, &left.first, full, NOW));
		assert_true(push_parts__leave_out(backend, request, full, NOW, &rest, &samples));
		assert_int_equal(samples, left.samples - left.first.samples);
		free(left.first.body);
		left = series_of(backend, rest.bytes, rest.length);
		assert_int_equal(left.count, count);
		assert_int_equal(left.samples, samples);
		free(rest.bytes);
	}
}

static bool is_whole(const struct push_backend *backend, const struct push_request *request,
		     struct full_labels *full)
{
	struct body rest;
	uint64_t samples;

	return !push_parts__leave_out(backend, request, full, NOW, &rest, &samples);
}

static void check_leaving_out(const struct push_backend *backend)
{
	struct push_window made = push_window__of(synthetic__machine());
	struct push_request request = { 0 };
	struct full_labels full = { 0 };

	backend->encode(&made.window, take_request, &request);
	assert_true(is_whole(backend, &request, &full));
	/* The request has several series, so it is unknown which one is full. */
	assert_false(push_parts__note(backend, &request, &full, NOW));
	assert_false(full_labels__is_empty(&full, NOW));
	assert_true(is_whole(backend, &request, &full));
	leave_out_all(backend, &request, &full);
	/* As if it were damaged on disk. */
	request.samples++;
	assert_true(is_whole(backend, &request, &full));
	request.samples--;
	request.length--;
	assert_true(is_whole(backend, &request, &full));
	full_labels__clear(&full);
	free(request.body);
	push_window__free(&made);
}

static void a_request_is_sent_without_its_full_series(void **state)
{
	(void)state;
	check_leaving_out(&push_pyroscope);
	check_leaving_out(&push_otlp);
}

/* It is noted that there is no room, but for no label set in particular. */
static void an_indivisible_request_stays_whole(void **state)
{
	const struct push_request request = { .body = "no request", .length = 10, .samples = 1 };
	struct full_labels full = { 0 };

	(void)state;
	assert_false(push_parts__note(&push_parca, &request, &full, NOW));
	assert_false(full_labels__is_empty(&full, NOW));
	assert_true(is_whole(&push_parca, &request, &full));
	assert_false(push_parts__note(&push_pyroscope, &request, &full, NOW));
	assert_true(is_whole(&push_pyroscope, &request, &full));
	full_labels__clear(&full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_label_set_is_left_out_for_a_while),
		cmocka_unit_test(memory_has_a_limit),
		cmocka_unit_test(a_request_is_sent_without_its_full_series),
		cmocka_unit_test(an_indivisible_request_stays_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
