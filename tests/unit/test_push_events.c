// SPDX-License-Identifier: BSD-2-Clause
/* A window of two events, as each kind of backend gets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "otlp.pb-c.h"
#include "pprof.pb-c.h"
#include "push_window.h"
#include "pyroscope.pb-c.h"

/* The sums of all requests, for each type of value. */
struct received {
	void (*read)(struct received *received, const struct body *body);
	json_t *sums; /* by "type/unit" */
	uint64_t samples;
};

static void take(void *context, struct body *body, uint64_t samples)
{
	struct received *received = context;

	received->samples += samples;
	received->read(received, body);
	free(body->bytes);
}

static void read_pyroscope(struct received *received, const struct body *body)
{
	Pyroscope__PushRequest *request =
		pyroscope__push_request__unpack(NULL, body->length, body->bytes);

	assert_non_null(request);
	for (size_t i = 0; i < request->n_series; i++) {
		const ProtobufCBinaryData *raw = &request->series[i]->samples[0]->raw_profile;
		struct body plain = { 0 };
		Pprof__Profile *profile;

		assert_true(body__gunzip(&plain, raw->data, raw->len));
		profile = pprof__profile__unpack(NULL, plain.length, plain.bytes);
		assert_non_null(profile);
		assert_int_equal(profile->n_sample_type, 4);
		for (size_t j = 0; j < profile->n_sample * 4; j++) {
			const Pprof__ValueType *type = profile->sample_type[j % 4];

			sums__count(received->sums,
				    xasprintf("%s/%s", profile->string_table[type->type],
					      profile->string_table[type->unit]),
				    profile->sample[j / 4]->value[j % 4]);
		}
		pprof__profile__free_unpacked(profile, NULL);
		free(plain.bytes);
	}
	pyroscope__push_request__free_unpacked(request, NULL);
}

static void read_otlp(struct received *received, const struct body *body)
{
	struct body plain = { 0 };
	Otlp__Request *request;
	char **strings;

	assert_true(body__gunzip(&plain, body->bytes, body->length));
	request = otlp__request__unpack(NULL, plain.length, plain.bytes);
	assert_non_null(request);
	strings = request->dictionary->string_table;
	for (size_t i = 0; i < request->n_resource_profiles; i++) {
		const Otlp__ScopeProfiles *scope = request->resource_profiles[i]->scope_profiles[0];

		assert_int_equal(scope->n_profiles, 2);
		for (size_t j = 0; j < scope->n_profiles; j++) {
			const Otlp__Profile *profile = scope->profiles[j];
			const Otlp__ValueType *type = profile->sample_type;

			assert_int_equal(profile->period, j ? 5 : 10000000);
			assert_string_equal(strings[profile->period_type->type_strindex],
					    j ? "page_faults" : "cpu");
			for (size_t k = 0; k < profile->n_samples; k++)
				sums__count(received->sums,
					    xasprintf("%s/%s", strings[type->type_strindex],
						      strings[type->unit_strindex]),
					    profile->samples[k]->values[0]);
		}
	}
	otlp__request__free_unpacked(request, NULL);
	free(plain.bytes);
}

/* What BACKEND is sent for 110 clock samples at 100 Hz and 6 samples of 5 page faults each. */
static json_t *sent(const struct push_backend *backend,
		    void (*read)(struct received *received, const struct body *body))
{
	struct push_window made = push_window__of(synthetic__events());
	struct received received = { .read = read, .sums = json_object() };

	backend->encode(&made.window, take, &received);
	assert_int_equal(received.samples, 110 + 6);
	push_window__free(&made);
	return received.sums;
}

static void has(json_t *sums, const char *type, int64_t value)
{
	assert_int_equal(json_integer_value(json_object_get(sums, type)), value);
	json_object_del(sums, type);
}

static void pyroscope_gets_two_values_per_event(void **state)
{
	json_t *sums = sent(&push_pyroscope, read_pyroscope);

	(void)state;
	has(sums, "samples/count", 110);
	has(sums, "cpu/nanoseconds", 110 * 10000000LL);
	has(sums, "page_faults_samples/count", 6);
	has(sums, "page_faults/count", 6 * 5);
	assert_int_equal(json_object_size(sums), 0);
	json_decref(sums);
}

static void otlp_gets_one_profile_per_event(void **state)
{
	json_t *sums = sent(&push_otlp, read_otlp);

	(void)state;
	has(sums, "samples/count", 110);
	has(sums, "page_faults/count", 6 * 5);
	assert_int_equal(json_object_size(sums), 0);
	json_decref(sums);
}

/* The samples of one request that is taken apart, as placed and as sent again. */
struct parts {
	uint64_t placed, taken;
};

static enum push_place place_together(void *context, const char *labels, uint64_t samples)
{
	struct parts *parts = context;

	(void)labels;
	parts->placed += samples;
	return PUSH_TOGETHER;
}

static void take_again(void *context, struct body *body, uint64_t samples)
{
	struct parts *parts = context;

	parts->taken += samples;
	free(body->bytes);
}

struct splitting {
	const struct push_backend *backend;
	uint64_t samples; /* of the requests */
};

static void take_and_split(void *context, struct body *body, uint64_t samples)
{
	struct splitting *splitting = context;
	struct parts parts = { 0 };

	splitting->backend->split(body->bytes, body->length, place_together, take_again, &parts);
	assert_int_equal(parts.placed, samples);
	assert_int_equal(parts.taken, samples);
	splitting->samples += samples;
	free(body->bytes);
}

/* When a request is taken apart, each sample counts once, not once per event or value. */
static void splitting_counts_each_sample_once(void **state)
{
	const struct push_backend *const backends[] = { &push_pyroscope, &push_otlp };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct push_window made = push_window__of(synthetic__events());
		struct splitting splitting = { .backend = backends[i] };

		backends[i]->encode(&made.window, take_and_split, &splitting);
		assert_int_equal(splitting.samples, 110 + 6);
		push_window__free(&made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pyroscope_gets_two_values_per_event),
		cmocka_unit_test(otlp_gets_one_profile_per_event),
		cmocka_unit_test(splitting_counts_each_sample_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
