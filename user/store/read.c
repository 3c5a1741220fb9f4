// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads a profile from the database.
 *
 * A service's samples of a window are packed bytes, and a day of windows has millions of stacks in
 * them.  So samples are added up by row number first, and each stack and location is looked up
 * once, at the end.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/sums.h"
#include "base/xalloc.h"
#include "profile/profile_events.h"
#include "services/service.h"
#include "store/database.h"
#include "store/packing.h"

/* Bounds of a window's rate, in Hz; others mean that the database is corrupt. */
#define RATE_MIN 1e-3
#define RATE_MAX 1e6

/* Bound of the samples of one stack in a window. */
#define SAMPLES_MAX (1ULL << 32)

struct known_labels {
	int64_t id; /* key */
	uint32_t thread;
	bool wanted;
	struct sums sums[EVENTS_MAX]; /* samples of each stack, by row number */
	UT_hash_handle hh;
};

struct reader {
	struct store *store;
	const struct store_query *query;
	struct profile *profile;
	struct store_found *found;
	sqlite3_stmt *select_location, *select_stack, *select_labels;
	/* Row number to index in the profile, stored as the value of a sum. */
	struct sums locations, stacks;
	struct known_labels *labels;
	double lowest_hz, highest_hz; /* of the clock; 0: no samples */
	int64_t start_ns, end_ns;     /* of the last window that was added */
	bool clock;		      /* the row being added is of the clock */
	char *wrong;		      /* the first error */
};

static const char select_location[] =
	"SELECT line, address, mapping, kind, first_line, nameless, name.text, path.text,"
	" short.text, first, last, file_offset, file.text, build_id.text FROM locations"
	" JOIN functions ON functions.id = function"
	" JOIN strings AS name ON name.id = functions.name"
	" JOIN strings AS path ON path.id = functions.filename"
	" JOIN strings AS short ON short.id = functions.short_filename"
	" LEFT JOIN mappings ON mappings.id = mapping"
	" LEFT JOIN strings AS file ON file.id = mappings.file"
	" LEFT JOIN strings AS build_id ON build_id.id = mappings.build_id"
	" WHERE locations.id = ?1";

/* Records the first error; returns whether there is one. */
static bool check(struct reader *reader, int code)
{
	if (code && !reader->wrong)
		reader->wrong = database__explain(reader->store);
	return reader->wrong;
}

/* A row is missing, or has values that are never written. */
static void take_for_broken(struct reader *reader)
{
	/* SQLite also returns no text if it is out of memory. */
	check(reader, sqlite3_errcode(reader->store->database) == SQLITE_NOMEM);
	if (!reader->wrong)
		reader->wrong = xasprintf("%s is corrupt (rows are missing): move it away",
					  reader->store->path);
}

/* Row ID of STATEMENT, valid until the statement is reset; NULL on an error.  0 is no row number,
 * but a damaged database may refer to it. */
static sqlite3_stmt *select_row(struct reader *reader, sqlite3_stmt *statement, int64_t id)
{
	int code;

	if (reader->wrong)
		return NULL;
	sqlite3_bind_int64(statement, 1, id);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW && id)
		return statement;
	if (code == SQLITE_DONE || code == SQLITE_ROW)
		take_for_broken(reader);
	else
		check(reader, code);
	sqlite3_reset(statement);
	return NULL;
}

/* The bytes of a column, from *AT to *END; empty for NULL. */
static void take_blob(sqlite3_stmt *row, int column, const uint8_t **at, const uint8_t **end)
{
	static const uint8_t none[1];
	const uint8_t *bytes = sqlite3_column_blob(row, column);

	*at = bytes ? bytes : none;
	*end = *at + (bytes ? sqlite3_column_bytes(row, column) : 0);
}

static string_id take_text(struct reader *reader, sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	if (!text)
		take_for_broken(reader);
	return text ? profile__string(reader->profile, text) : 0;
}

static uint32_t take_function(struct reader *reader, sqlite3_stmt *row)
{
	int kind = sqlite3_column_int(row, 3);
	struct profile_function function = {
		.kind = kind & ~STORE_KIND_INTERPRETER,
		.of_interpreter = !!(kind & STORE_KIND_INTERPRETER),
		.first_line = sqlite3_column_int64(row, 4),
		.nameless = sqlite3_column_int(row, 5),
		.name = take_text(reader, row, 6),
		.filename = take_text(reader, row, 7),
		.short_filename = take_text(reader, row, 8),
	};

	if (function.kind < FRAME_PYTHON || function.kind > FRAME_REASON)
		take_for_broken(reader);
	return profile__function(reader->profile, &function);
}

/* A location without a mapping has 0. */
static uint32_t take_mapping(struct reader *reader, sqlite3_stmt *row)
{
	struct profile_mapping mapping;

	if (!sqlite3_column_int64(row, 2))
		return 0;
	mapping = (struct profile_mapping){
		.start = sqlite3_column_int64(row, 9),
		.limit = sqlite3_column_int64(row, 10),
		.offset = sqlite3_column_int64(row, 11),
		.file = take_text(reader, row, 12),
		.build_id = take_text(reader, row, 13),
	};
	return profile__mapping(reader->profile, &mapping);
}

static uint32_t get_location(struct reader *reader, int64_t id)
{
	const struct sum *known = sums__find(&reader->locations, id);
	sqlite3_stmt *row = known ? NULL : select_row(reader, reader->select_location, id);
	struct profile_location location;
	uint32_t number;

	if (!row)
		return known ? known->value : 0;
	location = (struct profile_location){
		.function = take_function(reader, row),
		.line = sqlite3_column_int64(row, 0),
		.mapping = take_mapping(reader, row),
		.address = sqlite3_column_int64(row, 1),
	};
	sqlite3_reset(row);
	number = profile__location(reader->profile, &location);
	sums__add(&reader->locations, id, 0, number);
	return number;
}

static uint32_t unpack_stack(struct reader *reader, sqlite3_stmt *row)
{
	uint32_t locations[STACK_DEPTH_MAX], depth = 0;
	const uint8_t *at, *end;
	uint64_t location;

	take_blob(row, 0, &at, &end);
	while (depth < STACK_DEPTH_MAX && packed__take(&at, end, &location))
		locations[depth++] = get_location(reader, location);
	if (at != end || !depth)
		take_for_broken(reader);
	return reader->wrong ? 0 : profile__stack(reader->profile, locations, depth);
}

static uint32_t get_stack(struct reader *reader, int64_t id)
{
	const struct sum *known = sums__find(&reader->stacks, id);
	sqlite3_stmt *row = known ? NULL : select_row(reader, reader->select_stack, id);
	uint32_t stack;

	if (!row)
		return known ? known->value : 0;
	stack = unpack_stack(reader, row);
	sqlite3_reset(row);
	sums__add(&reader->stacks, id, 0, stack);
	return stack;
}

/* Whether LABELS match the query: one of the given values for each name in it. */
static bool matches(const struct store_query *query, const json_t *labels)
{
	for (size_t i = 0; i < query->label_count; i++) {
		const char *name = query->labels[i].name;
		const char *value = json_string_value(json_object_get(labels, name));
		bool met = false;

		for (size_t j = 0; j < query->label_count && !met; j++)
			met = strcmp(query->labels[j].name, name) == 0 &&
			      strcmp(query->labels[j].value, value ? value : "") == 0;
		if (!met)
			return false;
	}
	return true;
}

static struct known_labels *get_labels(struct reader *reader, int64_t id)
{
	struct known_labels *known = HASH_GET(hh, reader->labels, &id);
	json_t *labels;
	sqlite3_stmt *row;

	if (known)
		return known;
	row = select_row(reader, reader->select_labels, id);
	if (!row)
		return NULL;
	labels = json_loads((const char *)sqlite3_column_text(row, 0), 0, NULL);
	sqlite3_reset(row);
	if (!json_is_object(labels))
		take_for_broken(reader);
	known = xcalloc(1, sizeof(*known));
	known->id = id;
	HASH_ADD(hh, reader->labels, id, sizeof(known->id), known);
	known->wanted = json_is_object(labels) && matches(reader->query, labels);
	if (known->wanted) {
		known->thread = service__add(reader->profile, id, labels);
		reader->found->services++;
	}
	json_decref(labels);
	return known;
}

/* Adds the samples of a service.  Without values in the row, each sample is worth PERIOD. */
static void add_samples(struct reader *reader, struct sums *sums, sqlite3_stmt *row,
			uint64_t period)
{
	const uint8_t *at, *end, *value_at, *values_end;
	uint64_t stack = 0, step, count, value;
	bool told;

	take_blob(row, 1, &at, &end);
	take_blob(row, 2, &value_at, &values_end);
	told = value_at < values_end;
	while (at < end) {
		bool sound = packed__take(&at, end, &step) && packed__take(&at, end, &count) &&
			     (stack += step) && count < SAMPLES_MAX;

		value = count * period;
		if (sound && told)
			sound = packed__take(&value_at, values_end, &value);
		if (!sound) {
			take_for_broken(reader);
			break;
		}
		if (reader->clock && value > count * period)
			reader->lowest_hz = fmin(reader->lowest_hz, 1e9 * count / value);
		sums__add(sums, stack, count, value);
	}
}

/* Adds the sums of a service and EVENT to the profile. */
static void settle_service(struct reader *reader, const struct known_labels *labels, uint32_t event)
{
	const struct sums *sums = &labels->sums[event];

	for (size_t i = 0; i < sums->capacity && !reader->wrong; i++) {
		const struct sum *sum = &sums->slots[i];
		uint32_t stack = sum->key ? get_stack(reader, (int64_t)sum->key) : 0;

		if (!sum->key || reader->wrong)
			continue;
		profile__add(reader->profile, labels->thread, stack, event,
			     (struct amount){ sum->count, sum->value });
	}
}

static void settle(struct reader *reader)
{
	const struct known_labels *labels;

	for (labels = reader->labels; labels; labels = labels->hh.next)
		for (uint32_t i = 0; i < reader->profile->event_count; i++)
			settle_service(reader, labels, i);
}

static enum outcome outcome_named(const char *name)
{
	int outcome = 0;

	while (outcome < OUTCOME_COUNT && strcmp(outcome__name(outcome), name) != 0)
		outcome++;
	return outcome;
}

static void add_outcomes(struct reader *reader, struct ledger *ledger, const char *text)
{
	json_t *outcomes = json_loads(text, 0, NULL), *count;
	const char *name;

	if (!json_is_object(outcomes))
		take_for_broken(reader);
	json_object_foreach(outcomes, name, count)
	{
		enum outcome outcome = outcome_named(name);

		if (outcome == OUTCOME_COUNT || json_integer_value(count) < 0)
			take_for_broken(reader);
		else
			ledger->outcomes[outcome] += json_integer_value(count);
	}
	json_decref(outcomes);
}

/* Adds the time of a window.  Its rows, one per event, have the same time and follow each other. */
static void add_time(struct reader *reader, int64_t start_ns, int64_t end_ns)
{
	struct profile *profile = reader->profile;

	if (reader->found->windows && start_ns == reader->start_ns && end_ns == reader->end_ns)
		return;
	if (!reader->found->windows++)
		profile->start_unix_ns = start_ns;
	profile->duration_ns += end_ns - start_ns;
	reader->start_ns = start_ns;
	reader->end_ns = end_ns;
}

static void add_rate(struct reader *reader, double rate_hz)
{
	if (!(rate_hz >= RATE_MIN && rate_hz <= RATE_MAX)) {
		take_for_broken(reader);
		return;
	}
	reader->highest_hz = fmax(reader->highest_hz, rate_hz);
	reader->lowest_hz = reader->lowest_hz > 0 ? fmin(reader->lowest_hz, rate_hz) : rate_hz;
}

/* Adds a window's row of one event: id, start_ns, end_ns, rate_hz, events, lost, outcomes. */
static void add_head(struct reader *reader, sqlite3_stmt *row, struct ledger *ledger)
{
	double rate_hz = sqlite3_column_double(row, 3);
	int64_t start_ns = sqlite3_column_int64(row, 1), end_ns = sqlite3_column_int64(row, 2);
	int64_t events = sqlite3_column_int64(row, 4), lost = sqlite3_column_int64(row, 5);
	const char *outcomes = (const char *)sqlite3_column_text(row, 6);

	if (start_ns < 0 || end_ns < start_ns ||
	    end_ns - start_ns > INT64_MAX - reader->profile->duration_ns || events < 0 ||
	    lost < 0 || !outcomes) {
		take_for_broken(reader);
		return;
	}
	add_time(reader, start_ns, end_ns);
	ledger->events += events;
	ledger->lost += lost;
	add_outcomes(reader, ledger, outcomes);
	if (reader->clock)
		add_rate(reader, rate_hz);
}

/* Parses the event of a window's row, such as "page-faults:100"; false if it is no known event. */
static bool parse_event(const char *text, struct event *event)
{
	char *wrong;

	*event = event__default();
	if (!text || strcmp(text, STORE_CLOCK) == 0)
		return text;
	wrong = event__parse(text, event);
	free(wrong);
	return !wrong && event->period;
}

static void bind_times(sqlite3_stmt *statement, const struct store_query *query)
{
	sqlite3_bind_int64(statement, 1, query->since_unix_ns);
	sqlite3_bind_int64(statement, 2, query->until_unix_ns);
}

/* Adds a window's row with all its services, if the profile has its event. */
static void add_window(struct reader *reader, sqlite3_stmt *row, sqlite3_stmt *services)
{
	const char *text = (const char *)sqlite3_column_text(row, 7);
	struct event event;
	uint64_t period;
	int code, index;

	index = parse_event(text, &event) ? profile_events__find(reader->profile, event.name) : -1;
	if (index < 0)
		return;
	reader->clock = !event.period;
	add_head(reader, row, &reader->profile->ledgers[index]);
	if (reader->wrong)
		return;
	period = event.period ?: ledger__period_ns(sqlite3_column_double(row, 3));
	sqlite3_bind_int64(services, 1, sqlite3_column_int64(row, 0));
	while ((code = sqlite3_step(services)) == SQLITE_ROW && !reader->wrong) {
		struct known_labels *labels = get_labels(reader, sqlite3_column_int64(services, 0));

		if (labels && labels->wanted)
			add_samples(reader, &labels->sums[index], services, period);
	}
	check(reader, code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code);
	sqlite3_reset(services);
}

static void add_windows(struct reader *reader)
{
	sqlite3_stmt *windows = NULL, *services = NULL;
	int code = database__prepare(
			   reader->store,
			   "SELECT id, start_ns, end_ns, rate_hz, events, lost, outcomes, event"
			   " FROM windows WHERE end_ns > ?1 AND start_ns < ?2"
			   " ORDER BY end_ns, start_ns, id",
			   &windows)
			   ?: database__prepare(reader->store,
						"SELECT label_set, samples, sample_values"
						" FROM services WHERE window = ?1",
						&services);

	if (!code) {
		bind_times(windows, reader->query);
		while (!reader->wrong && (code = sqlite3_step(windows)) == SQLITE_ROW)
			add_window(reader, windows, services);
	}
	check(reader, code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code);
	sqlite3_finalize(services);
	sqlite3_finalize(windows);
}

static void complete(struct reader *reader)
{
	struct profile *profile = reader->profile;

	reader->found->rates[0] = reader->lowest_hz;
	reader->found->rates[1] = reader->highest_hz;
	profile->rate_hz = reader->highest_hz;
	for (uint32_t i = 0; i < profile->event_count; i++)
		reader->found->lost += profile->ledgers[i].lost;
	/* Lost samples belong to no service. */
	if (reader->query->label_count)
		service__judge(profile);
	for (uint32_t i = 0; i < profile->event_count; i++) {
		profile->ledgers[i].rate_hz = profile->events[i].period ? 0 : profile->rate_hz;
		profile->ledgers[i].duration_s = profile->duration_ns / 1e9;
		profile->ledgers[i].stacks = profile->stack_count;
	}
	profile__tell_files_apart(profile);
}

static int find_extent(struct reader *reader)
{
	return database__number(reader->store, "SELECT min(start_ns) FROM windows", 0,
				&reader->found->first_ns)
		       ?: database__number(reader->store, "SELECT max(end_ns) FROM windows", 0,
					   &reader->found->last_ns);
}

static void forget(struct reader *reader)
{
	struct known_labels *labels = reader->labels, *next;

	HASH_CLEAR(hh, reader->labels);
	for (; labels; labels = next) {
		next = labels->hh.next;
		for (int i = 0; i < EVENTS_MAX; i++)
			free(labels->sums[i].slots);
		free(labels);
	}
	free(reader->locations.slots);
	free(reader->stacks.slots);
	sqlite3_finalize(reader->select_location);
	sqlite3_finalize(reader->select_stack);
	sqlite3_finalize(reader->select_labels);
}

char *store__read(struct store *store, const struct store_query *query, struct profile *profile,
		  struct store_found *found)
{
	struct reader reader = {
		.store = store, .query = query, .profile = profile, .found = found
	};

	memset(found, 0, sizeof(*found));
	/* One transaction: all reads see the same state. */
	check(&reader,
	      database__run(store, "BEGIN")
		      ?: find_extent(&reader)
		      ?: database__prepare(store, select_location, &reader.select_location)
		      ?: database__prepare(store, "SELECT locations FROM stacks WHERE id = ?1",
					   &reader.select_stack)
		      ?: database__prepare(store, "SELECT labels FROM label_sets WHERE id = ?1",
					   &reader.select_labels));
	if (!reader.wrong)
		add_windows(&reader);
	settle(&reader);
	if (!reader.wrong)
		complete(&reader);
	forget(&reader);
	database__run(store, "ROLLBACK");
	return reader.wrong;
}

/* Adds EVENT to the COUNT events at *EVENTS, or lowers the period of the one with its name; returns
 * the new count. */
static size_t add_event(struct event **events, size_t count, const struct event *event)
{
	for (size_t i = 0; i < count; i++) {
		struct event *known = &(*events)[i];

		if (strcmp(known->name, event->name) != 0)
			continue;
		if (event->period < known->period)
			known->period = event->period;
		return count;
	}
	*events = xreallocarray(*events, count + 1, sizeof(**events));
	(*events)[count] = *event;
	return count + 1;
}

char *store__events(struct store *store, const struct store_query *query, struct event **events,
		    size_t *count)
{
	sqlite3_stmt *statement = NULL;
	char *wrong = NULL;
	int code = database__prepare(store,
				     "SELECT event FROM windows WHERE end_ns > ?1 AND start_ns < ?2"
				     " GROUP BY event ORDER BY event <> '" STORE_CLOCK "', event",
				     &statement);

	*events = NULL;
	*count = 0;
	if (!code)
		bind_times(statement, query);
	while (!code && !wrong && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		struct event event;

		code = SQLITE_OK;
		if (parse_event((const char *)sqlite3_column_text(statement, 0), &event))
			*count = add_event(events, *count, &event);
		else
			wrong = xasprintf("%s has an event that this pybpfprof does not know: "
					  "use the version that wrote it",
					  store->path);
	}
	if (!wrong && code != SQLITE_OK && code != SQLITE_DONE)
		wrong = database__explain(store);
	sqlite3_finalize(statement);
	return wrong;
}
