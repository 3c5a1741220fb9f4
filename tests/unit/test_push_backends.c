// SPDX-License-Identifier: BSD-2-Clause
/* What each kind of backend is sent, decoded as the backend would do it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "gunzip.h"
#include "otlp.pb-c.h"
#include "pprof.pb-c.h"
#include "push/backend.h"
#include "push_window.h"
#include "pyroscope.pb-c.h"

#define PERIOD_NS 10000000

/* The sums of all requests. */
struct received {
	void (*read)(struct received *received, const uint8_t *bytes, size_t length);
	json_t *sums;
	json_t *times; /* {"start service": true}: duplicates would count once */
	uint64_t samples;
	size_t requests;
};

static void take(void *context, struct body *body, uint64_t samples)
{
	struct received *received = context;

	received->requests++;
	received->samples += samples;
	received->read(received, body->bytes, body->length);
	free(body->bytes);
}

static void note_time(struct received *received, int64_t start, const char *service)
{
	char *key = xasprintf("%lld %s", (long long)start, service);

	assert_null(json_object_get(received->times, key));
	json_object_set_new(received->times, key, json_true());
	free(key);
}

static char *pprof_key(const Pprof__Profile *profile, const Pprof__Sample *sample,
		       const char *service)
{
	char *key = xstrdup(service);

	for (size_t i = 0; i < sample->n_location_id; i++) {
		const Pprof__Location *location = profile->location[sample->location_id[i] - 1];
		const Pprof__Function *function =
			profile->function[location->line[0]->function_id - 1];

		assert_int_equal(location->id, sample->location_id[i]);
		key = sums__frame(key, profile->string_table[function->name],
				  profile->string_table[function->filename], function->start_line,
				  location->line[0]->line);
	}
	return key;
}

static void read_pprof(struct received *received, const uint8_t *bytes, size_t size,
		       const char *service)
{
	size_t length;
	uint8_t *message = gunzip(bytes, size, &length);
	Pprof__Profile *profile = pprof__profile__unpack(NULL, length, message);

	assert_non_null(profile);
	/* Pyroscope's limits. */
	assert_in_range(length, 1, 4 << 20);
	assert_in_range(profile->n_sample, 1, 16000);
	assert_int_equal(profile->period, PERIOD_NS);
	assert_int_equal(profile->duration_nanos, WINDOW_END - WINDOW_START);
	assert_int_equal(profile->n_comment, 0);
	note_time(received, profile->time_nanos, service);
	for (size_t i = 0; i < profile->n_sample; i++) {
		const Pprof__Sample *sample = profile->sample[i];

		/* Labels of samples would become series. */
		assert_int_equal(sample->n_label, 0);
		assert_int_equal(sample->value[1], sample->value[0] * PERIOD_NS);
		sums__count(received->sums, pprof_key(profile, sample, service), sample->value[0]);
	}
	pprof__profile__free_unpacked(profile, NULL);
	free(message);
}

static void read_pyroscope(struct received *received, const uint8_t *bytes, size_t length)
{
	Pyroscope__PushRequest *request = pyroscope__push_request__unpack(NULL, length, bytes);

	assert_non_null(request);
	for (size_t i = 0; i < request->n_series; i++) {
		const Pyroscope__Series *series = request->series[i];
		const char *service = NULL;

		assert_int_equal(series->n_labels, 3);
		assert_string_equal(series->labels[0]->name, "__name__");
		assert_string_equal(series->labels[0]->value, "process_cpu");
		for (size_t j = 0; j < series->n_labels; j++)
			if (strcmp(series->labels[j]->name, "service_name") == 0)
				service = series->labels[j]->value;
		assert_non_null(service);
		assert_int_equal(series->n_samples, 1);
		read_pprof(received, series->samples[0]->raw_profile.data,
			   series->samples[0]->raw_profile.len, service);
	}
	pyroscope__push_request__free_unpacked(request, NULL);
}

/* Decodes TEXT from base64; the caller frees. */
static uint8_t *decode(const char *text, size_t *length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *bytes = xmalloc(strlen(text));
	uint32_t bits = 0;
	int count = 0;

	assert_int_equal(strlen(text) % 4, 0);
	*length = 0;
	for (; *text && *text != '='; text++) {
		bits = bits << 6 | (uint32_t)(strchr(digits, *text) - digits);
		count += 6;
		if (count >= 8) {
			count -= 8;
			bytes[(*length)++] = bits >> count;
		}
	}
	return bytes;
}

static void read_parca(struct received *received, const uint8_t *bytes, size_t length)
{
	json_t *request = json_loadb((const char *)bytes, length, 0, NULL), *series, *label;
	size_t i, j;

	assert_non_null(request);
	assert_true(json_is_true(json_object_get(request, "normalized")));
	json_array_foreach(json_object_get(request, "series"), i, series)
	{
		const char *service = NULL, *name = NULL, *profile;
		size_t size;
		uint8_t *pprof;

		json_array_foreach(json_object_get(json_object_get(series, "labels"), "labels"), j,
				   label)
		{
			const char *key = json_string_value(json_object_get(label, "name"));
			const char *value = json_string_value(json_object_get(label, "value"));

			service = strcmp(key, "service_name") == 0 ? value : service;
			name = strcmp(key, "__name__") == 0 ? value : name;
		}
		assert_string_equal(name, "process_cpu");
		assert_int_equal(
			json_unpack(series, "{s:[{s:s}]}", "samples", "rawProfile", &profile), 0);
		pprof = decode(profile, &size);
		read_pprof(received, pprof, size, service);
		free(pprof);
	}
	json_decref(request);
}

/* The entry of a table at INDEX, which must not be 0: that entry is empty. */
#define ENTRY(dictionary, table, index)                                         \
	(assert_in_range((index), 1, (int)(dictionary)->n_##table##_table - 1), \
	 (dictionary)->table##_table[index])

static const char *text_of(const Otlp__Dictionary *dictionary, int32_t index)
{
	assert_in_range(index, 0, dictionary->n_string_table - 1);
	return dictionary->string_table[index];
}

static void check_type(const Otlp__Dictionary *dictionary, const Otlp__ValueType *type,
		       const char *name, const char *unit)
{
	assert_string_equal(text_of(dictionary, type->type_strindex), name);
	assert_string_equal(text_of(dictionary, type->unit_strindex), unit);
}

static void check_frame_type(const Otlp__Dictionary *dictionary, const Otlp__Location *location)
{
	const Otlp__Attribute *attribute;

	assert_in_range(location->n_attribute_indices, 0, 1);
	if (!location->n_attribute_indices)
		return;
	attribute = ENTRY(dictionary, attribute, location->attribute_indices[0]);
	assert_string_equal(text_of(dictionary, attribute->key_strindex), "profile.frame.type");
	assert_string_equal(attribute->value->string_value, "cpython");
}

static char *otlp_key(const Otlp__Dictionary *dictionary, int32_t index, const char *service)
{
	const Otlp__Stack *stack = ENTRY(dictionary, stack, index);
	char *key = xstrdup(service);

	for (size_t i = 0; i < stack->n_location_indices; i++) {
		const Otlp__Location *location =
			ENTRY(dictionary, location, stack->location_indices[i]);
		const Otlp__Function *function =
			ENTRY(dictionary, function, location->lines[0]->function_index);

		check_frame_type(dictionary, location);
		key = sums__frame(key, text_of(dictionary, function->name_strindex),
				  text_of(dictionary, function->filename_strindex),
				  function->start_line, location->lines[0]->line);
	}
	return key;
}

static void check_empty_entries(const Otlp__Dictionary *dictionary)
{
	assert_string_equal(dictionary->string_table[0], "");
	assert_int_equal(otlp__mapping__get_packed_size(dictionary->mapping_table[0]), 0);
	assert_int_equal(otlp__location__get_packed_size(dictionary->location_table[0]), 0);
	assert_int_equal(otlp__function__get_packed_size(dictionary->function_table[0]), 0);
	assert_int_equal(otlp__attribute__get_packed_size(dictionary->attribute_table[0]), 0);
	assert_int_equal(otlp__stack__get_packed_size(dictionary->stack_table[0]), 0);
	assert_int_equal(dictionary->link_table[0]->trace_id.len, 16);
	assert_int_equal(dictionary->link_table[0]->span_id.len, 8);
}

static const char *otlp_service(const Otlp__Resource *resource)
{
	for (size_t i = 0; i < resource->n_attributes; i++)
		if (strcmp(resource->attributes[i]->key, "service.name") == 0)
			return resource->attributes[i]->value->string_value;
	fail();
	return NULL;
}

static void read_series(struct received *received, const Otlp__Dictionary *dictionary,
			const Otlp__ResourceProfiles *series)
{
	const Otlp__ScopeProfiles *scope = series->scope_profiles[0];
	const Otlp__Profile *profile = scope->profiles[0];
	const char *service = otlp_service(series->resource);

	assert_int_equal(series->n_scope_profiles, 1);
	assert_string_equal(scope->scope->name, "pybpfprof");
	assert_int_equal(scope->n_profiles, 1);
	check_type(dictionary, profile->sample_type, "samples", "count");
	check_type(dictionary, profile->period_type, "cpu", "nanoseconds");
	assert_int_equal(profile->period, PERIOD_NS);
	assert_int_equal(profile->duration_nano, WINDOW_END - WINDOW_START);
	note_time(received, profile->time_unix_nano, service);
	for (size_t i = 0; i < profile->n_samples; i++) {
		assert_int_equal(profile->samples[i]->n_values, 1);
		sums__count(received->sums,
			    otlp_key(dictionary, profile->samples[i]->stack_index, service),
			    profile->samples[i]->values[0]);
	}
}

static void read_otlp(struct received *received, const uint8_t *bytes, size_t size)
{
	size_t length;
	uint8_t *message = gunzip(bytes, size, &length);
	Otlp__Request *request = otlp__request__unpack(NULL, length, message);

	assert_non_null(request);
	check_empty_entries(request->dictionary);
	for (size_t i = 0; i < request->n_resource_profiles; i++)
		read_series(received, request->dictionary, request->resource_profiles[i]);
	otlp__request__free_unpacked(request, NULL);
	free(message);
}

/* Encodes PROFILE, which is freed, and checks all samples.  Returns the number of requests. */
static size_t sent(struct profile *profile, const struct push_backend *backend,
		   void (*reading)(struct received *received, const uint8_t *bytes, size_t length))
{
	struct push_window made = push_window__of(profile);
	struct received received = { .read = reading,
				     .sums = json_object(),
				     .times = json_object() };
	json_t *wanted = sums__of_window(&made);

	backend->encode(&made.window, take, &received);
	assert_int_equal(received.samples, ledger__samples(profile->ledgers));
	assert_true(json_equal(wanted, received.sums));
	json_decref(wanted);
	json_decref(received.sums);
	json_decref(received.times);
	push_window__free(&made);
	return received.requests;
}

static void check_all(const struct push_backend *backend,
		      void (*reading)(struct received *received, const uint8_t *bytes,
				      size_t length))
{
	assert_int_equal(sent(synthetic__plain(), backend, reading), 1);
	assert_int_equal(sent(synthetic__machine(), backend, reading), 1);
	assert_int_equal(sent(synthetic__hostile(), backend, reading), 1);
	assert_int_equal(sent(synthetic__new(), backend, reading), 0);
	assert_in_range(sent(synthetic__tree(500, 400, 200), backend, reading), 1, 10);
}

/* COUNT stacks of one frame. */
static struct profile *flat(uint32_t count)
{
	struct profile *profile = synthetic__new();
	uint32_t thread = synthetic__thread(profile, 1, "python3 app.py", 1, "");

	for (uint32_t i = 0; i < count; i++) {
		uint32_t location = synthetic__location(profile, "main", "/srv/", "app.py", 1, i);

		synthetic__add(profile, OUTCOME_PYTHON, thread, &location, 1, 1);
	}
	return profile;
}

static void pyroscope_gets_all_samples(void **state)
{
	(void)state;
	check_all(&push_pyroscope, read_pyroscope);
	/* More samples than one profile may have. */
	assert_in_range(sent(flat(17000), &push_pyroscope, read_pyroscope), 1, 9);
}

static void parca_gets_all_samples(void **state)
{
	(void)state;
	check_all(&push_parca, read_parca);
}

static void otlp_gets_all_samples(void **state)
{
	(void)state;
	check_all(&push_otlp, read_otlp);
}

static const Otlp__Attribute *attribute_of(const Otlp__Dictionary *dictionary, int32_t index,
					   const char *key)
{
	const Otlp__Attribute *attribute = ENTRY(dictionary, attribute, index);

	assert_string_equal(text_of(dictionary, attribute->key_strindex), key);
	return attribute;
}

static void read_machine_code(void *context, struct body *body, uint64_t samples)
{
	size_t length;
	uint8_t *message = gunzip(body->bytes, body->length, &length);
	Otlp__Request *otlp = otlp__request__unpack(NULL, length, message);
	const Otlp__Dictionary *dictionary = otlp->dictionary;
	const Otlp__Mapping *mapping = ENTRY(dictionary, mapping, 1);
	size_t *found = context;

	assert_int_equal(samples, 12);
	assert_int_equal(dictionary->n_mapping_table, 2);
	assert_int_equal(mapping->memory_start, 0x2000);
	assert_int_equal(mapping->memory_limit, 0x9000);
	assert_int_equal(mapping->file_offset, 0x1000);
	assert_string_equal(text_of(dictionary, mapping->filename_strindex), "/usr/lib/libm.so.6");
	assert_string_equal(attribute_of(dictionary, mapping->attribute_indices[0],
					 "process.executable.build_id.gnu")
				    ->value->string_value,
			    SYNTHETIC_BUILD_ID);
	for (size_t i = 1; i < dictionary->n_location_table; i++) {
		const Otlp__Location *location = ENTRY(dictionary, location, i);
		const char *type = attribute_of(dictionary, location->attribute_indices[0],
						"profile.frame.type")
					   ->value->string_value;

		if (location->mapping_index) {
			assert_int_equal(location->address, 0x2345);
			assert_string_equal(type, "native");
			++*found;
		} else if (location->address) {
			assert_true(location->address == SYNTHETIC_ADDRESS);
			assert_string_equal(type, "kernel");
			++*found;
		}
	}
	otlp__request__free_unpacked(otlp, NULL);
	free(message);
	free(body->bytes);
}

static void otlp_gets_addresses_and_mappings(void **state)
{
	struct push_window made = push_window__of(synthetic__mixed());
	size_t found = 0;

	(void)state;
	push_otlp.encode(&made.window, read_machine_code, &found);
	assert_int_equal(found, 2);
	push_window__free(&made);
}

static enum push_place place_alone(void *context, const char *labels, uint64_t samples)
{
	(void)context;
	assert_non_null(strstr(labels, "\"service"));
	assert_true(samples);
	return PUSH_ALONE;
}

/* Splits each request into its series. */
struct splitting {
	const struct push_backend *backend;
	struct received received;
};

static void take_split(void *context, struct body *body, uint64_t samples)
{
	struct splitting *splitting = context;
	uint64_t before = splitting->received.samples;

	splitting->backend->split(body->bytes, body->length, place_alone, take,
				  &splitting->received);
	assert_int_equal(splitting->received.samples, before + samples);
	free(body->bytes);
}

static void check_split(const struct push_backend *backend,
			void (*reading)(struct received *received, const uint8_t *bytes,
					size_t length))
{
	struct push_window made = push_window__of(synthetic__machine());
	struct splitting splitting = {
		backend,
		{ .read = reading, .sums = json_object(), .times = json_object() },
	};
	json_t *wanted = sums__of_window(&made);

	backend->encode(&made.window, take_split, &splitting);
	assert_int_equal(splitting.received.requests, 3);
	assert_int_equal(splitting.received.samples, ledger__samples(made.window.ledgers));
	assert_true(json_equal(wanted, splitting.received.sums));
	backend->split("no request", 10, place_alone, take, &splitting.received);
	assert_int_equal(splitting.received.requests, 3);
	json_decref(wanted);
	json_decref(splitting.received.sums);
	json_decref(splitting.received.times);
	push_window__free(&made);
}

static void each_series_can_be_sent_alone(void **state)
{
	(void)state;
	check_split(&push_pyroscope, read_pyroscope);
	check_split(&push_otlp, read_otlp);
	/* An empty series. */
	push_pyroscope.split("\x0a\x00", 2, place_alone, take, NULL);
}

static void count_pyroscope_labels(struct received *received, const uint8_t *bytes, size_t length)
{
	Pyroscope__PushRequest *request = pyroscope__push_request__unpack(NULL, length, bytes);

	for (size_t i = 0; i < request->n_series; i++)
		for (size_t j = 0; j < request->series[i]->n_labels; j++)
			sums__count(received->sums, xstrdup(request->series[i]->labels[j]->name),
				    1);
	pyroscope__push_request__free_unpacked(request, NULL);
}

static void count_parca_labels(struct received *received, const uint8_t *bytes, size_t length)
{
	json_t *request = json_loadb((const char *)bytes, length, 0, NULL), *series, *label;
	size_t i, j;

	json_array_foreach(json_object_get(request, "series"), i, series) json_array_foreach(
		json_object_get(json_object_get(series, "labels"), "labels"), j, label)
		sums__count(received->sums,
			    xstrdup(json_string_value(json_object_get(label, "name"))), 1);
	json_decref(request);
}

static void count_otlp_labels(struct received *received, const uint8_t *bytes, size_t size)
{
	size_t length;
	uint8_t *message = gunzip(bytes, size, &length);
	Otlp__Request *request = otlp__request__unpack(NULL, length, message);

	for (size_t i = 0; i < request->n_resource_profiles; i++) {
		const Otlp__Resource *resource = request->resource_profiles[i]->resource;

		for (size_t j = 0; j < resource->n_attributes; j++)
			sums__count(received->sums, xstrdup(resource->attributes[j]->key), 1);
	}
	otlp__request__free_unpacked(request, NULL);
	free(message);
}

/* {label: number of series} in what BACKEND is sent for processes with 40 more labels. */
static json_t *labels_sent(const struct push_backend *backend,
			   void (*reading)(struct received *received, const uint8_t *bytes,
					   size_t length))
{
	struct push_window made = push_window__of(synthetic__machine());
	struct received received = { .read = reading, .sums = json_object() };
	char name[2000];

	for (size_t i = 0; i < made.profile->process_count; i++) {
		for (int j = 0; j < 40; j++) {
			snprintf(name, sizeof(name), "label_%02d", j);
			json_object_set_new(made.labels[i], name, json_string("x"));
		}
		/* A name that is too long, though by the alphabet it comes first. */
		memset(name, 'a', LABEL_NAME_BYTES_MAX + 1);
		name[LABEL_NAME_BYTES_MAX + 1] = '\0';
		json_object_set_new(made.labels[i], name, json_string("x"));
	}
	backend->encode(&made.window, take, &received);
	assert_int_equal(received.samples, ledger__samples(made.window.ledgers));
	push_window__free(&made);
	return received.sums;
}

static void has_labels(json_t *sent_labels, size_t count, const char *last, const char *service)
{
	assert_int_equal(json_object_size(sent_labels), count);
	assert_non_null(json_object_get(sent_labels, last));
	assert_int_equal(json_integer_value(json_object_get(sent_labels, service)), 3);
	json_decref(sent_labels);
}

static void no_more_labels_than_a_backend_takes(void **state)
{
	(void)state;
	log__set_level(LOG_ERROR);
	has_labels(labels_sent(&push_pyroscope, count_pyroscope_labels), 30, "label_26",
		   "service_name");
	has_labels(labels_sent(&push_otlp, count_otlp_labels), 26, "label_23", "service.name");
	has_labels(labels_sent(&push_parca, count_parca_labels), 44, "label_39", "service_name");
}

static void the_number_of_rejected_profiles_is_read(void **state)
{
	static const uint8_t nothing[] = { 0x0a, 0x00 };
	static const uint8_t two[] = { 0x0a, 0x07, 0x08, 0x02, 0x12, 0x03, 'b', 'a', 'd' };
	char *why = NULL;

	(void)state;
	assert_int_equal(push_otlp.rejected("", 0, &why), 0);
	assert_int_equal(push_otlp.rejected("<html>", 6, &why), 0);
	assert_null(why);
	assert_int_equal(push_otlp.rejected(nothing, sizeof(nothing), &why), 0);
	free(why);
	assert_int_equal(push_otlp.rejected(two, sizeof(two), &why), 2);
	assert_string_equal(why, "bad");
	free(why);
}

static void values_of_labels_are_short_and_plain(void **state)
{
	char long_value[5000] = { 0 }, *sent_value;
	json_t *value;

	(void)state;
	memset(long_value, 'x', sizeof(long_value) - 1);
	value = json_string(long_value);
	sent_value = push_label_value(value);
	assert_in_range(strlen(sent_value), 1000, 1024);
	free(sent_value);
	json_decref(value);
	value = json_string("a\nb");
	sent_value = push_label_value(value);
	assert_string_equal(sent_value, "a\\x0ab");
	free(sent_value);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pyroscope_gets_all_samples),
		cmocka_unit_test(parca_gets_all_samples),
		cmocka_unit_test(otlp_gets_all_samples),
		cmocka_unit_test(otlp_gets_addresses_and_mappings),
		cmocka_unit_test(each_series_can_be_sent_alone),
		cmocka_unit_test(no_more_labels_than_a_backend_takes),
		cmocka_unit_test(the_number_of_rejected_profiles_is_read),
		cmocka_unit_test(values_of_labels_are_short_and_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
