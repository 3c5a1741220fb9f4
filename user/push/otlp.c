// SPDX-License-Identifier: BSD-2-Clause
/*
 * OpenTelemetry's profiles over HTTP, in the layout of the protocol from 1.10 on.
 *
 * The tables of a batch's profile become those of the message's dictionary.  Entry 0 of each table
 * must be empty, so all indices are one higher, but for strings and mappings, whose entry 0 is
 * empty here too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "otlp.pb-c.h"
#include "profile/plain_text.h"
#include "profile/profile_events.h"
#include "push/backend.h"
#include "services/service.h"

#define NS_PER_MINUTE 60000000000LL

/* Of a request.  They share one dictionary. */
#define SERIES_MAX 1000

/* The server may be Pyroscope, which adds these labels: the name, two of its own, and the service's
 * name again. */
#define OTHER_LABELS 4

#define TRACE_ID_BYTES 16
#define SPAN_ID_BYTES  8

/* Indices of strings that the profile does not have by itself. */
struct names {
	string_id samples, count, frame_type, build_id;
	string_id type[EVENTS_MAX], unit[EVENTS_MAX]; /* by event */
};

/* The attribute table begins with the frame types.  The build IDs of mappings follow, from mapping
 * 1 on. */
static const char *const frame_types[] = {
	[FRAME_PYTHON] = "cpython",
	[FRAME_NATIVE] = "native",
	[FRAME_KERNEL] = "kernel",
	[FRAME_JIT] = "native",
};

#define FRAME_TYPES	    (sizeof(frame_types) / sizeof(frame_types[0]))
#define BUILD_ID_OF(number) (FRAME_TYPES - 1 + (number))

/* A message or part of one, allocated so that protobuf-c frees it with its parent. */
static void *make(size_t size, void (*init)(void *message))
{
	void *message = xmalloc(size);

	init(message);
	return message;
}

#define MAKE(type, name) ((type *)make(sizeof(type), (void (*)(void *))name##__init))

/* Allocates COUNT entries of the repeated FIELD of MESSAGE. */
#define MAKE_LIST(message, field, count) \
	((message)->n_##field = (count), \
	 (message)->field = xcalloc((count), sizeof(*(message)->field)))

/* The name of a label by OpenTelemetry's conventions, or its own. */
static const char *attribute_name(const char *label)
{
	static const char *const names[][2] = {
		{ "service_name", "service.name" },
		{ "comm", "process.executable.name" },
		{ "container_id", "container.id" },
		{ "pod_uid", "k8s.pod.uid" },
		{ "pod", "k8s.pod.name" },
		{ "namespace", "k8s.namespace.name" },
		{ "node", "host.name" },
		{ "python_version", "process.runtime.version" },
		{ "pid", "process.pid" },
		{ "thread", "thread.name" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(label, names[i][0]) == 0)
			return names[i][1];
	return label;
}

static Otlp__AnyValue *make_text(char *text)
{
	Otlp__AnyValue *value = MAKE(Otlp__AnyValue, otlp__any_value);

	value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value->string_value = text;
	return value;
}

static Otlp__Resource *make_resource(json_t *labels)
{
	Otlp__Resource *resource = MAKE(Otlp__Resource, otlp__resource);
	size_t count = 0;
	const char *name;
	json_t *value;

	MAKE_LIST(resource, attributes, json_object_size(labels));
	json_object_foreach(labels, name, value)
	{
		Otlp__KeyValue *attribute = MAKE(Otlp__KeyValue, otlp__key_value);

		attribute->key = xstrdup(attribute_name(name));
		attribute->value = make_text(push_label_value(value));
		resource->attributes[count++] = attribute;
	}
	return resource;
}

static Otlp__ValueType *make_type(string_id type, string_id unit)
{
	Otlp__ValueType *message = MAKE(Otlp__ValueType, otlp__value_type);

	message->type_strindex = type;
	message->unit_strindex = unit;
	return message;
}

static Otlp__Sample *make_sample(const struct profile *profile, const struct profile_sample *sample)
{
	Otlp__Sample *message = MAKE(Otlp__Sample, otlp__sample);

	message->stack_index = sample->stack + 1;
	MAKE_LIST(message, values, 1);
	message->values[0] = profile__weight(profile, sample);
	return message;
}

/* The number of samples from FIRST on that have the same thread, which is a series, and the same
 * event. */
static size_t alike(const struct profile *profile, size_t first)
{
	const struct profile_sample *samples = profile->samples;
	size_t end = first;

	while (end < profile->sample_count && samples[end].thread == samples[first].thread &&
	       samples[end].event == samples[first].event)
		end++;
	return end - first;
}

/* A profile of COUNT samples from FIRST on, which are of one series and event. */
static Otlp__Profile *make_profile(const struct batch *batch, const struct names *names,
				   size_t first, size_t count)
{
	const struct profile *profile = batch->profile;
	uint32_t series = profile->samples[first].thread, event = profile->samples[first].event;
	Otlp__Profile *message = MAKE(Otlp__Profile, otlp__profile);

	message->sample_type = profile->events[event].period
				       ? make_type(names->type[event], names->unit[event])
				       : make_type(names->samples, names->count);
	message->period_type = make_type(names->type[event], names->unit[event]);
	message->period = profile__period(profile, event);
	message->time_unix_nano = batch->series[series].start_unix_ns;
	message->duration_nano = profile->duration_ns;
	MAKE_LIST(message, samples, count);
	for (size_t i = 0; i < count; i++)
		message->samples[i] = make_sample(profile, &profile->samples[first + i]);
	return message;
}

/* Series NUMBER, with a profile for each event.  Its samples begin at *FIRST, which moves to those
 * of the next series. */
static Otlp__ResourceProfiles *make_series(const struct batch *batch, const struct names *names,
					   size_t number, size_t *first)
{
	const struct profile *profile = batch->profile;
	Otlp__ResourceProfiles *series = MAKE(Otlp__ResourceProfiles, otlp__resource_profiles);
	Otlp__ScopeProfiles *scope = MAKE(Otlp__ScopeProfiles, otlp__scope_profiles);

	scope->scope = MAKE(Otlp__Scope, otlp__scope);
	scope->scope->name = xstrdup("pybpfprof");
	scope->scope->version = xstrdup(PYBPFPROF_VERSION);
	scope->profiles = xcalloc(profile->event_count, sizeof(*scope->profiles));
	for (size_t count;
	     *first < profile->sample_count && profile->samples[*first].thread == number;
	     *first += count) {
		count = alike(profile, *first);
		scope->profiles[scope->n_profiles++] = make_profile(batch, names, *first, count);
	}
	series->resource = make_resource(batch->series[number].labels);
	MAKE_LIST(series, scope_profiles, 1);
	series->scope_profiles[0] = scope;
	return series;
}

static void add_functions(Otlp__Dictionary *dictionary, const struct profile *profile)
{
	MAKE_LIST(dictionary, function_table, profile->function_count + 1);
	dictionary->function_table[0] = MAKE(Otlp__Function, otlp__function);
	for (size_t i = 0; i < profile->function_count; i++) {
		Otlp__Function *message = MAKE(Otlp__Function, otlp__function);

		message->name_strindex = profile->functions[i].name;
		message->filename_strindex = profile->functions[i].filename;
		message->start_line = profile->functions[i].first_line;
		dictionary->function_table[i + 1] = message;
	}
}

static Otlp__Location *make_location(const struct profile *profile,
				     const struct profile_location *location)
{
	Otlp__Location *message = MAKE(Otlp__Location, otlp__location);
	enum frame_kind kind = profile->functions[location->function].kind;

	message->mapping_index = location->mapping;
	message->address = location->address;
	MAKE_LIST(message, lines, 1);
	message->lines[0] = MAKE(Otlp__Line, otlp__line);
	message->lines[0]->function_index = location->function + 1;
	message->lines[0]->line = location->line;
	if (kind < FRAME_TYPES) {
		MAKE_LIST(message, attribute_indices, 1);
		message->attribute_indices[0] = kind;
	}
	return message;
}

static Otlp__Stack *make_stack(const struct profile_stack *stack)
{
	Otlp__Stack *message = MAKE(Otlp__Stack, otlp__stack);

	MAKE_LIST(message, location_indices, stack->depth);
	for (uint32_t i = 0; i < stack->depth; i++)
		message->location_indices[i] = stack->locations[i] + 1;
	return message;
}

static void add_locations(Otlp__Dictionary *dictionary, const struct profile *profile)
{
	MAKE_LIST(dictionary, location_table, profile->location_count + 1);
	dictionary->location_table[0] = MAKE(Otlp__Location, otlp__location);
	for (size_t i = 0; i < profile->location_count; i++)
		dictionary->location_table[i + 1] = make_location(profile, &profile->locations[i]);
	MAKE_LIST(dictionary, stack_table, profile->stack_count + 1);
	dictionary->stack_table[0] = MAKE(Otlp__Stack, otlp__stack);
	for (size_t i = 0; i < profile->stack_count; i++)
		dictionary->stack_table[i + 1] = make_stack(&profile->stacks[i]);
}

static Otlp__Attribute *make_attribute(string_id key, const char *value)
{
	Otlp__Attribute *attribute = MAKE(Otlp__Attribute, otlp__attribute);

	attribute->key_strindex = key;
	attribute->value = make_text(xstrdup(value));
	return attribute;
}

static void add_attributes(Otlp__Dictionary *dictionary, const struct profile *profile,
			   const struct names *names)
{
	MAKE_LIST(dictionary, attribute_table, BUILD_ID_OF(profile->mapping_count));
	dictionary->attribute_table[0] = MAKE(Otlp__Attribute, otlp__attribute);
	for (size_t i = 1; i < FRAME_TYPES; i++)
		dictionary->attribute_table[i] = make_attribute(names->frame_type, frame_types[i]);
	for (size_t i = 1; i < profile->mapping_count; i++)
		dictionary->attribute_table[BUILD_ID_OF(i)] = make_attribute(
			names->build_id, profile->strings[profile->mappings[i].build_id]);
}

static void add_mappings(Otlp__Dictionary *dictionary, const struct profile *profile)
{
	MAKE_LIST(dictionary, mapping_table, profile->mapping_count);
	for (size_t i = 0; i < profile->mapping_count; i++) {
		const struct profile_mapping *mapping = &profile->mappings[i];
		Otlp__Mapping *message = MAKE(Otlp__Mapping, otlp__mapping);

		message->memory_start = mapping->start;
		message->memory_limit = mapping->limit;
		message->file_offset = mapping->offset;
		message->filename_strindex = mapping->file;
		if (mapping->build_id) {
			MAKE_LIST(message, attribute_indices, 1);
			message->attribute_indices[0] = BUILD_ID_OF(i);
		}
		dictionary->mapping_table[i] = message;
	}
}

/* Links are not used, but entry 0 must exist. */
static void add_links(Otlp__Dictionary *dictionary)
{
	Otlp__Link *link = MAKE(Otlp__Link, otlp__link);

	link->trace_id = (ProtobufCBinaryData){ TRACE_ID_BYTES, xcalloc(TRACE_ID_BYTES, 1) };
	link->span_id = (ProtobufCBinaryData){ SPAN_ID_BYTES, xcalloc(SPAN_ID_BYTES, 1) };
	MAKE_LIST(dictionary, link_table, 1);
	dictionary->link_table[0] = link;
}

static Otlp__Dictionary *make_dictionary(const struct profile *profile, const struct names *names)
{
	Otlp__Dictionary *dictionary = MAKE(Otlp__Dictionary, otlp__dictionary);

	add_functions(dictionary, profile);
	add_locations(dictionary, profile);
	add_attributes(dictionary, profile, names);
	add_mappings(dictionary, profile);
	add_links(dictionary);
	MAKE_LIST(dictionary, string_table, profile->string_count);
	for (size_t i = 0; i < profile->string_count; i++)
		dictionary->string_table[i] = plain_text__escape(profile->strings[i], SIZE_MAX);
	return dictionary;
}

static struct names add_names(struct profile *profile)
{
	struct names names = {
		.samples = profile__string(profile, "samples"),
		.count = profile__string(profile, "count"),
		.frame_type = profile__string(profile, "profile.frame.type"),
		.build_id = profile__string(profile, "process.executable.build_id.gnu"),
	};

	for (uint32_t i = 0; i < profile->event_count; i++) {
		char *type = profile_events__type(&profile->events[i]);

		names.type[i] = profile__string(profile, type);
		names.unit[i] = profile__string(profile, profile->events[i].unit);
		free(type);
	}
	return names;
}

static Otlp__Request *make_request(const struct batch *batch)
{
	struct names names = add_names(batch->profile);
	Otlp__Request *request = MAKE(Otlp__Request, otlp__request);
	size_t first = 0;

	request->dictionary = make_dictionary(batch->profile, &names);
	MAKE_LIST(request, resource_profiles, batch->series_count);
	for (size_t i = 0; i < batch->series_count; i++)
		request->resource_profiles[i] = make_series(batch, &names, i, &first);
	return request;
}

/* The divisor that turns a value of PROFILE into a number of samples. */
static uint64_t divisor(const Otlp__Request *request, const Otlp__Profile *profile)
{
	const Otlp__ValueType *type = profile->sample_type;
	size_t names = request->dictionary ? request->dictionary->n_string_table : 0;

	if (!type || (size_t)type->type_strindex >= names || profile->period <= 0 ||
	    strcmp(request->dictionary->string_table[type->type_strindex], "samples") == 0)
		return 1;
	return profile->period;
}

static uint64_t samples_of(const Otlp__Request *request, const Otlp__ResourceProfiles *series)
{
	const Otlp__ScopeProfiles *scope =
		series->n_scope_profiles ? series->scope_profiles[0] : NULL;
	uint64_t samples = 0;

	for (size_t i = 0; scope && i < scope->n_profiles; i++) {
		const Otlp__Profile *profile = scope->profiles[i];
		uint64_t value = 0;

		for (size_t j = 0; j < profile->n_samples; j++)
			if (profile->samples[j]->n_values)
				value += (uint64_t)profile->samples[j]->values[0];
		samples += value / divisor(request, profile);
	}
	return samples;
}

/* The labels as text, for push_place_of; the caller frees it. */
static char *labels_text(const Otlp__Resource *resource)
{
	json_t *labels = json_object();
	char *text;

	/* A value that is not text was damaged on disk. */
	for (size_t i = 0; resource && i < resource->n_attributes; i++) {
		const Otlp__KeyValue *attribute = resource->attributes[i];

		if (attribute->value &&
		    attribute->value->value_case == OTLP__ANY_VALUE__VALUE_STRING_VALUE)
			json_object_set_new(labels, attribute->key,
					    json_string(attribute->value->string_value));
	}
	text = service__key(labels);
	json_decref(labels);
	return text;
}

/* Passes a request with COUNT series of ALL and its whole dictionary to TAKE. */
static void take_some(const Otlp__Request *all, Otlp__ResourceProfiles **series, size_t count,
		      uint64_t samples, push_take *take, void *context)
{
	Otlp__Request some = OTLP__REQUEST__INIT;
	struct body body = { 0 };

	some.dictionary = all->dictionary;
	some.n_resource_profiles = count;
	some.resource_profiles = series;
	otlp__request__pack(&some, body__extend(&body, otlp__request__get_packed_size(&some)));
	body__gzip(&body);
	take(context, &body, samples);
}

static void encode(const struct labelled_window *window, push_take *take, void *context)
{
	const struct batch_limits limits = { SERIES_MAX, SAMPLES_MAX, PROFILE_BYTES,
					     LABELS_MAX - OTHER_LABELS };
	struct batches *batches = batches__new(window, &limits);
	const struct batch *batch;

	while ((batch = batches__next(batches))) {
		Otlp__Request *request = make_request(batch);
		uint64_t samples = 0;

		/* Samples are counted as split() counts them, from the values alone. */
		for (size_t i = 0; i < request->n_resource_profiles; i++)
			samples += samples_of(request, request->resource_profiles[i]);
		take_some(request, request->resource_profiles, request->n_resource_profiles,
			  samples, take, context);
		otlp__request__free_unpacked(request, NULL);
	}
	batches__free(batches);
}

/* A request that was on disk may be damaged. */
static Otlp__Request *unpack(const void *bytes, size_t length)
{
	Otlp__Request *request = NULL;
	struct body body = { 0 };

	if (body__gunzip(&body, bytes, length))
		request = otlp__request__unpack(NULL, body.length, body.bytes);
	free(body.bytes);
	return request;
}

static void split(const void *bytes, size_t length, push_place_of *place, push_take *take,
		  void *context)
{
	Otlp__Request *request = unpack(bytes, length);
	size_t together = 0;
	uint64_t samples = 0;

	for (size_t i = 0; request && i < request->n_resource_profiles; i++) {
		Otlp__ResourceProfiles *series = request->resource_profiles[i];
		uint64_t own = samples_of(request, series);
		char *labels = labels_text(series->resource);
		enum push_place to = own ? place(context, labels, own) : PUSH_NOWHERE;

		free(labels);
		if (to == PUSH_ALONE)
			take_some(request, &series, 1, own, take, context);
		if (to != PUSH_TOGETHER)
			continue;
		/* The series that go together are moved to the front. */
		request->resource_profiles[i] = request->resource_profiles[together];
		request->resource_profiles[together++] = series;
		samples += own;
	}
	if (together)
		take_some(request, request->resource_profiles, together, samples, take, context);
	if (request)
		otlp__request__free_unpacked(request, NULL);
}

static int64_t rejected(const void *answer, size_t length, char **why)
{
	Otlp__Response *response = otlp__response__unpack(NULL, length, answer);
	int64_t count = 0;

	if (response && response->partial_success) {
		count = response->partial_success->rejected_profiles;
		*why = xstrdup(response->partial_success->error_message);
	}
	if (response)
		otlp__response__free_unpacked(response, NULL);
	return count;
}

static const char *const answers[] = { "application/x-protobuf", "application/json", NULL };

const struct push_backend push_otlp = {
	.name = "otlp",
	.path = "/v1development/profiles",
	.content_type = "application/x-protobuf",
	.content_encoding = "gzip",
	.answers = answers,
	.age_max_ns = 59 * NS_PER_MINUTE, /* the server may be Pyroscope */
	.repeatable = false, /* the server may be a Collector with any backend behind it */
	.encode = encode,
	.split = split,
	.rejected = rejected,
};
