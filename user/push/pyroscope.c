// SPDX-License-Identifier: BSD-2-Clause
/*
 * Pyroscope's push API, by the Connect protocol: a POST of protobuf.
 *
 * A protobuf message may be written in parts, one after another: a reader merges their fields.  So
 * a request is the concatenation of messages with one series each.
 *
 * Pyroscope takes the valid series of a request, and says 400 if one is invalid, but not which one;
 * or 429 if it has no room for one.
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "pprof.pb-c.h"
#include "push/backend.h"
#include "pyroscope.pb-c.h"
#include "services/service.h"

#define NS_PER_MINUTE 60000000000LL

static void add_label(Pyroscope__Series *series, const char *name, char *value)
{
	Pyroscope__Label *label = xcalloc(1, sizeof(*label));

	pyroscope__label__init(label);
	label->name = (char *)name;
	label->value = value;
	series->labels[series->n_labels++] = label;
}

static void add_labels(Pyroscope__Series *series, json_t *labels)
{
	const char *name;
	json_t *value;

	series->labels = xcalloc(json_object_size(labels) + 1, sizeof(*series->labels));
	add_label(series, "__name__", xstrdup(PROFILE_NAME));
	json_object_foreach(labels, name, value) add_label(series, name, push_label_value(value));
}

static void free_labels(Pyroscope__Series *series)
{
	for (size_t i = 0; i < series->n_labels; i++) {
		free(series->labels[i]->value);
		free(series->labels[i]);
	}
	free(series->labels);
}

static void add_series(struct pieces *pieces, const struct batch *batch)
{
	Pyroscope__PushRequest request = PYROSCOPE__PUSH_REQUEST__INIT;
	Pyroscope__Series series = PYROSCOPE__SERIES__INIT, *all_series[] = { &series };
	Pyroscope__Sample sample = PYROSCOPE__SAMPLE__INIT, *samples[] = { &sample };
	struct body profile = { 0 }, piece = { 0 };

	batch__add_pprof(batch, &profile);
	sample.raw_profile = (ProtobufCBinaryData){ profile.length, profile.bytes };
	series.n_samples = 1;
	series.samples = samples;
	add_labels(&series, batch->series[0].labels);
	request.n_series = 1;
	request.series = all_series;
	pyroscope__push_request__pack(
		&request, body__extend(&piece, pyroscope__push_request__get_packed_size(&request)));
	pieces__add(pieces, &piece, batch->samples);
	free_labels(&series);
	free(profile.bytes);
	free(piece.bytes);
}

static void encode(const struct labelled_window *window, push_take *take, void *context)
{
	/* The profile's name is one more label. */
	const struct batch_limits limits = { 1, SAMPLES_MAX, PROFILE_BYTES, LABELS_MAX - 1 };
	struct batches *batches = batches__new(window, &limits);
	struct pieces pieces = { take, context, "", "", "", { 0 }, 0 };
	const struct batch *batch;

	while ((batch = batches__next(batches)))
		add_series(&pieces, batch);
	pieces__end(&pieces);
	batches__free(batches);
}

/* The number of samples in a gzipped pprof file: of the two values of each event the first is their
 * number. */
static uint64_t samples_of(const ProtobufCBinaryData *gzipped)
{
	struct body body = { 0 };
	Pprof__Profile *profile = NULL;
	uint64_t samples = 0;

	if (body__gunzip(&body, gzipped->data, gzipped->len))
		profile = pprof__profile__unpack(NULL, body.length, body.bytes);
	for (size_t i = 0; profile && i < profile->n_sample; i++)
		for (size_t j = 0; j < profile->sample[i]->n_value; j += 2)
			samples += (uint64_t)profile->sample[i]->value[j];
	if (profile)
		pprof__profile__free_unpacked(profile, NULL);
	free(body.bytes);
	return samples;
}

/* The labels as text, for push_place_of; the caller frees it. */
static char *labels_text(const Pyroscope__Series *series)
{
	json_t *labels = json_object();
	char *text;

	/* Text that is not UTF-8 was damaged on disk; json_string() returns NULL for it. */
	for (size_t i = 0; i < series->n_labels; i++)
		json_object_set_new(labels, series->labels[i]->name,
				    json_string(series->labels[i]->value));
	text = service__key(labels);
	json_decref(labels);
	return text;
}

/* Passes a request with COUNT series to TAKE. */
static void take_some(Pyroscope__Series **series, size_t count, uint64_t samples, push_take *take,
		      void *context)
{
	Pyroscope__PushRequest some = PYROSCOPE__PUSH_REQUEST__INIT;
	struct body body = { 0 };

	some.n_series = count;
	some.series = series;
	pyroscope__push_request__pack(
		&some, body__extend(&body, pyroscope__push_request__get_packed_size(&some)));
	take(context, &body, samples);
}

static void split(const void *bytes, size_t length, push_place_of *place, push_take *take,
		  void *context)
{
	Pyroscope__PushRequest *request = pyroscope__push_request__unpack(NULL, length, bytes);
	size_t together = 0;
	uint64_t samples = 0;

	for (size_t i = 0; request && i < request->n_series; i++) {
		Pyroscope__Series *series = request->series[i];
		/* A request that was on disk may be damaged. */
		uint64_t own = series->n_samples ? samples_of(&series->samples[0]->raw_profile) : 0;
		char *labels = labels_text(series);
		enum push_place to = own ? place(context, labels, own) : PUSH_NOWHERE;

		free(labels);
		if (to == PUSH_ALONE)
			take_some(&series, 1, own, take, context);
		if (to != PUSH_TOGETHER)
			continue;
		/* The series that go together are moved to the front. */
		request->series[i] = request->series[together];
		request->series[together++] = series;
		samples += own;
	}
	if (together)
		take_some(request->series, together, samples, take, context);
	if (request)
		pyroscope__push_request__free_unpacked(request, NULL);
}

static const char *const answers[] = { "application/proto", NULL };

const struct push_backend push_pyroscope = {
	.name = "pyroscope",
	.path = "/push.v1.PusherService/Push",
	.content_type = "application/proto",
	.answers = answers,
	.age_max_ns = 59 * NS_PER_MINUTE, /* it refuses profiles that are an hour old */
	.repeatable = true,		  /* profiles with the same labels and time count once */
	.encode = encode,
	.split = split,
};
