// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parca's profile store, through its gateway for JSON.  The gRPC API behind it takes the same, but
 * does not pass through proxies without HTTP/2.
 *
 * Parca answers unknown paths with 200 and a page, and counts duplicates twice.  Its OTLP is not
 * used: it shows each function under the name of another one (v0.28).
 */
#include <stdlib.h>

#include "base/xalloc.h"
#include "push/backend.h"

static void add_label(json_t *list, const char *name, const char *value)
{
	json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "value", value));
}

/* {"labels": [...]}; the caller frees it. */
static char *labels_text(json_t *labels)
{
	json_t *list = json_array(), *set = json_pack("{s:o}", "labels", list), *value;
	const char *name;
	char *text;

	add_label(list, "__name__", PROFILE_NAME);
	json_object_foreach(labels, name, value)
	{
		char *sent = push_label_value(value);

		add_label(list, name, sent);
		free(sent);
	}
	text = json_dumps(set, JSON_COMPACT);
	json_decref(set);
	return text;
}

static void add_series(struct pieces *pieces, const struct batch *batch)
{
	char *labels = labels_text(batch->series[0].labels);
	struct body profile = { 0 }, piece = { 0 };

	batch__add_pprof(batch, &profile);
	body__add_text(&piece, "{\"labels\":");
	body__add_text(&piece, labels);
	body__add_text(&piece, ",\"samples\":[{\"rawProfile\":\"");
	body__add_base64(&piece, profile.bytes, profile.length);
	body__add_text(&piece, "\"}]}");
	pieces__add(pieces, &piece, batch->samples);
	free(labels);
	free(profile.bytes);
	free(piece.bytes);
}

static void encode(const struct labelled_window *window, push_take *take, void *context)
{
	const struct batch_limits limits = { 1, SAMPLES_MAX, PROFILE_BYTES, 0 };
	struct batches *batches = batches__new(window, &limits);
	struct pieces pieces = { take,	context, "{\"normalized\":true,\"series\":[", ",", "]}",
				 { 0 }, 0 };
	const struct batch *batch;

	while ((batch = batches__next(batches)))
		add_series(&pieces, batch);
	pieces__end(&pieces);
	batches__free(batches);
}

static const char *const answers[] = { "application/json", NULL };

const struct push_backend push_parca = {
	.name = "parca",
	.path = "/api/profiles/writeraw",
	.content_type = "application/json",
	.answers = answers,
	.repeatable = false,
	.encode = encode,
};
