// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "output/output.h"
#include "profile/copy.h"
#include "profile/plain_text.h"
#include "push/batches.h"
#include "services/service.h"

/* About the most that each message of the encoded profile takes, without strings. */
#define STRING_BYTES   4
#define FUNCTION_BYTES 20
#define LOCATION_BYTES 20
#define SAMPLE_BYTES   40
#define FRAME_BYTES    4

/* Of the names in the warning. */
#define SAID_BYTES_MAX 1000

/* These labels come first. */
static const char *const own[] = {
	"service_name", "pid",	"thread",	  "namespace", "pod",
	"container_id", "comm", "python_version", "node",      "pod_uid",
};

struct series {
	UT_hash_handle hh;
	uint32_t number;
	json_t *labels;
	char *text; /* its labels as they are sent; key */
};

struct row {
	const struct series *series;
	uint32_t event, stack;
	struct amount amount;
};

struct batches {
	const struct labelled_window *window;
	struct batch_limits limits;
	struct series *series; /* by labels */
	struct row *rows;      /* sorted by series, event, stack */
	size_t row_count, next;
	const struct series *last_series; /* of the last row, and its number of parts so far */
	uint32_t parts;
	struct batch batch;
	struct profile_copy copy; /* into the batch's profile */
	size_t bytes;
};

static size_t rank_of(const char *name)
{
	size_t i;

	if (strlen(name) > LABEL_NAME_BYTES_MAX)
		return SIZE_MAX;
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(name, own[i]) == 0)
			break;
	return i;
}

static int compare_names(const void *left, const void *right)
{
	const char *a = *(const char *const *)left, *b = *(const char *const *)right;
	size_t first = rank_of(a), second = rank_of(b);

	if (first != second)
		return first < second ? -1 : 1;
	return strcmp(a, b);
}

static void say(const json_t *labels, size_t count, const char *const *left_out, size_t left)
{
	static bool said;
	char *names;
	size_t length;
	FILE *file;

	if (said)
		return;
	said = true;
	file = xopen_memstream(&names, &length);
	for (size_t i = 0; i < left; i++)
		fprintf(file, "%s%s", i ? ", " : "", left_out[i]);
	fclose(file);
	names = output__shorten(names, SAID_BYTES_MAX);
	log__warning("backends accept %zu labels per service, with names up to %d bytes; %s and "
		     "perhaps others are sent without %s: drop labels with a rule to choose",
		     count, LABEL_NAME_BYTES_MAX,
		     json_string_value(json_object_get(labels, "service_name")), names);
	free(names);
}

static json_t *choose_labels(json_t *labels, size_t count)
{
	size_t all = json_object_size(labels), kept = 0, listed = 0;
	const char **names, *name;
	json_t *few, *value;

	if (!count)
		return json_incref(labels);
	names = xcalloc(all + 1, sizeof(*names));
	json_object_foreach(labels, name, value) names[listed++] = name;
	qsort(names, all, sizeof(*names), compare_names);
	while (kept < all && kept < count && rank_of(names[kept]) != SIZE_MAX)
		kept++;
	if (kept == all) {
		free(names);
		return json_incref(labels);
	}
	few = json_object();
	for (size_t i = 0; i < kept; i++)
		json_object_set(few, names[i], json_object_get(labels, names[i]));
	say(labels, count, names + kept, all - kept);
	free(names);
	return few;
}

char *push_label_value(const json_t *value)
{
	return output__shorten(plain_text__escape(json_string_value(value), SIZE_MAX),
			       LABEL_VALUE_BYTES_MAX);
}

/* The key of a series: its labels as they are sent, so perhaps shortened. */
static char *series_key(json_t *labels)
{
	json_t *sent = json_object(), *value;
	const char *name;
	char *key;

	json_object_foreach(labels, name, value)
	{
		char *text = push_label_value(value);

		json_object_set_new(sent, name, json_string(text));
		free(text);
	}
	key = service__key(sent);
	json_decref(sent);
	return key;
}

static const struct series *find_series(struct batches *batches, json_t *all_labels)
{
	json_t *labels = choose_labels(all_labels, batches->limits.labels);
	char *text = series_key(labels);
	struct series *series;

	HASH_FIND_STR(batches->series, text, series);
	if (series) {
		free(text);
		json_decref(labels);
		return series;
	}
	series = xcalloc(1, sizeof(*series));
	series->number = HASH_COUNT(batches->series);
	series->labels = labels;
	series->text = text;
	HASH_ADD_KEYPTR(hh, batches->series, series->text, strlen(text), series);
	return series;
}

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->series != b->series)
		return a->series->number < b->series->number ? -1 : 1;
	if (a->event != b->event)
		return a->event < b->event ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

static void make_rows(struct batches *batches)
{
	const struct profile *profile = batches->window->profile;
	const struct series **of_threads = xcalloc(profile->thread_count, sizeof(*of_threads));

	batches->rows = xcalloc(profile->sample_count, sizeof(*batches->rows));
	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		const struct series **series = &of_threads[sample->thread];

		if (!*series)
			*series = find_series(
				batches, labelled_window__labels(batches->window, sample->thread));
		batches->rows[batches->row_count++] =
			(struct row){ *series, sample->event, sample->stack, sample->amount };
	}
	free(of_threads);
	qsort(batches->rows, batches->row_count, sizeof(*batches->rows), compare_rows);
}

struct batches *batches__new(const struct labelled_window *window,
			     const struct batch_limits *limits)
{
	struct batches *batches = xcalloc(1, sizeof(*batches));

	batches->window = window;
	batches->limits = *limits;
	profile_copy__init(&batches->copy, window->profile, NULL);
	batches->copy.without_short_filenames = true;
	make_rows(batches);
	return batches;
}

static void clear_batch(struct batches *batches)
{
	profile__free(batches->batch.profile);
	free(batches->batch.series);
	batches->batch = (struct batch){ 0 };
	batches->bytes = 0;
}

void batches__free(struct batches *batches)
{
	struct series *series, *next;

	if (!batches)
		return;
	clear_batch(batches);
	profile_copy__free(&batches->copy);
	HASH_ITER (hh, batches->series, series, next) {
		HASH_DEL(batches->series, series);
		json_decref(series->labels);
		free(series->text);
		free(series);
	}
	free(batches->rows);
	free(batches);
}

static void begin_batch(struct batches *batches)
{
	const struct labelled_window *window = batches->window;
	struct profile *profile = profile__new();

	clear_batch(batches);
	memcpy(profile->events, window->profile->events, sizeof(profile->events));
	profile->event_count = window->profile->event_count;
	profile->rate_hz = labelled_window__rate(window);
	profile->duration_ns = window->end_unix_ns - window->start_unix_ns;
	profile->start_unix_ns = window->start_unix_ns;
	batches->batch.profile = profile;
	batches->batch.series = xcalloc(batches->limits.series, sizeof(struct batch_series));
	profile_copy__turn(&batches->copy, profile);
}

static void begin_series(struct batches *batches, const struct series *begun)
{
	struct batch *batch = &batches->batch;
	struct batch_series *series = &batch->series[batch->series_count++];

	batches->parts = begun == batches->last_series ? batches->parts + 1 : 0;
	batches->last_series = begun;
	series->labels = begun->labels;
	/* No two parts of a series have the same time. */
	series->start_unix_ns =
		batches->window->start_unix_ns + (int64_t)batches->parts * BATCH_PART_NS;
	if (batch->series_count == 1)
		batch->profile->start_unix_ns = series->start_unix_ns;
	profile__thread(batch->profile, profile__process(batch->profile, batch->series_count, 0), 0,
			0);
}

/* The stack INDEX of the window in the batch; adds the size of what is new to it. */
static uint32_t copy_stack(struct batches *batches, uint32_t index)
{
	const struct profile *profile = batches->batch.profile;
	size_t string = profile->string_count, locations = profile->location_count;
	uint32_t stack = profile_copy__stack(&batches->copy, index);

	batches->bytes += (profile->location_count - locations) * (LOCATION_BYTES + FUNCTION_BYTES);
	for (; string < profile->string_count; string++)
		batches->bytes += strlen(profile->strings[string]) + STRING_BYTES;
	return stack;
}

static void take_row(struct batches *batches, const struct row *row)
{
	struct batch *batch = &batches->batch;
	struct profile *profile = batch->profile;
	size_t samples = profile->sample_count;

	if (!batch->series_count || row->series != batches->last_series)
		begin_series(batches, row->series);
	profile__add(profile, batch->series_count - 1, copy_stack(batches, row->stack), row->event,
		     row->amount);
	batch->samples += row->amount.count;
	if (profile->sample_count > samples)
		batches->bytes +=
			SAMPLE_BYTES +
			(size_t)FRAME_BYTES * batches->window->profile->stacks[row->stack].depth;
}

static bool has_room(const struct batches *batches, const struct row *row)
{
	const struct batch *batch = &batches->batch;

	/* Rows that differ only in their amounts are one sample. */
	if (!batch->series_count || compare_rows(row - 1, row) == 0)
		return true;
	if (row->series != batches->last_series && batch->series_count == batches->limits.series)
		return false;
	return batch->profile->sample_count < batches->limits.samples &&
	       batches->bytes < batches->limits.bytes;
}

const struct batch *batches__next(struct batches *batches)
{
	if (batches->next == batches->row_count)
		return NULL;
	begin_batch(batches);
	while (batches->next < batches->row_count &&
	       has_room(batches, &batches->rows[batches->next]))
		take_row(batches, &batches->rows[batches->next++]);
	return &batches->batch;
}

void batch__add_pprof(const struct batch *batch, struct body *body)
{
	const struct output_options options = { .title = NULL };
	char *bytes;
	size_t length;
	FILE *file = xopen_memstream(&bytes, &length);

	if (output_pprof.write(batch->profile, &options, file))
		out_of_memory();
	fclose(file);
	body__add(body, bytes, length);
	free(bytes);
}
