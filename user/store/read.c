// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads a profile from the database.
 *
 * A service's samples of a window are packed bytes, and a day of windows has millions of stacks in
 * them.  So samples are added up by row number first, and each stack is looked up once, at the end.
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
#include "store/stored_event.h"

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
	sqlite3_stmt *select[STORE_TABLES];
	/* For each table but label_sets, row number to index in the profile, stored as the value of
	 * a sum. */
	struct sums numbers[STORE_TABLES];
	struct known_labels *labels;
	double lowest_hz, highest_hz; /* of the clock; 0: no samples */
	int64_t start_ns, end_ns;     /* of the last window that was added */
	bool clock;		      /* the row being added is of the clock */
	char *wrong;		      /* the first error */
};

static const char *const selects[STORE_TABLES] = {
	[TABLE_STRINGS] = "SELECT text FROM strings WHERE id = ?1",
	[TABLE_FUNCTIONS] = ("SELECT name, filename, short_filename, first_line, kind, nameless "
			     "FROM functions WHERE id = ?1"),
	[TABLE_MAPPINGS] =
		"SELECT first, last, file_offset, file, build_id FROM mappings WHERE id = ?1",
	[TABLE_LOCATIONS] = "SELECT function, line, mapping, address FROM locations WHERE id = ?1",
	[TABLE_STACKS] = "SELECT locations FROM stacks WHERE id = ?1",
	[TABLE_LABEL_SETS] = "SELECT labels FROM label_sets WHERE id = ?1",
};

/* The same for version 1, which has no machine code and only the clock. */
static const char *select_of(const struct store *store, enum store_table table)
{
	if (store->version >= 2)
		return selects[table];
	return table == TABLE_MAPPINGS ? "SELECT 0"
	       : table == TABLE_LOCATIONS
		       ? "SELECT function, line, 0, 0 FROM locations WHERE id = ?1"
		       : selects[table];
}

/* Remembers the index of row ID of TABLE, and returns it. */
static uint32_t know(struct reader *reader, enum store_table table, int64_t id, uint32_t number)
{
	/* 0 is no row number.  A damaged database may refer to it: such a row is looked up each
	 * time. */
	if (id)
		sums__add(&reader->numbers[table], id, 0, number);
	return number;
}

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

/* Row ID of TABLE, valid until the statement is reset; NULL on an error. */
static sqlite3_stmt *select_row(struct reader *reader, enum store_table table, int64_t id)
{
	sqlite3_stmt *statement = reader->select[table];
	int code;

	if (reader->wrong)
		return NULL;
	sqlite3_bind_int64(statement, 1, id);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		return statement;
	if (code == SQLITE_DONE)
		take_for_broken(reader);
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

/* The same for a row that is not in the profile yet.  NULL with its index in *NUMBER if it is; with
 * 0 on an error. */
static sqlite3_stmt *select_new(struct reader *reader, enum store_table table, int64_t id,
				uint32_t *number)
{
	const struct sum *known = sums__find(&reader->numbers[table], id);

	*number = known ? known->value : 0;
	return known ? NULL : select_row(reader, table, id);
}

static string_id get_string(struct reader *reader, int64_t id)
{
	string_id string;
	const char *text;
	sqlite3_stmt *row = select_new(reader, TABLE_STRINGS, id, &string);

	if (!row)
		return string;
	text = (const char *)sqlite3_column_text(row, 0);
	if (!text)
		take_for_broken(reader);
	string = text ? profile__string(reader->profile, text) : 0;
	sqlite3_reset(row);
	return know(reader, TABLE_STRINGS, id, string);
}

static uint32_t get_function(struct reader *reader, int64_t id)
{
	struct profile_function function;
	uint32_t number;
	sqlite3_stmt *row = select_new(reader, TABLE_FUNCTIONS, id, &number);
	int kind;
	bool of_interpreter;

	if (!row)
		return number;
	kind = sqlite3_column_int(row, 4);
	of_interpreter = kind & STORE_KIND_INTERPRETER;
	kind &= ~STORE_KIND_INTERPRETER;
	if (kind < FRAME_PYTHON || kind > FRAME_REASON)
		take_for_broken(reader);
	function = (struct profile_function){
		.name = get_string(reader, sqlite3_column_int64(row, 0)),
		.filename = get_string(reader, sqlite3_column_int64(row, 1)),
		.short_filename = get_string(reader, sqlite3_column_int64(row, 2)),
		.first_line = sqlite3_column_int64(row, 3),
		.kind = kind,
		.nameless = sqlite3_column_int(row, 5),
		.of_interpreter = of_interpreter,
	};
	sqlite3_reset(row);
	return know(reader, TABLE_FUNCTIONS, id, profile__function(reader->profile, &function));
}

static uint32_t get_mapping(struct reader *reader, int64_t id)
{
	struct profile_mapping mapping;
	uint32_t number = 0;
	sqlite3_stmt *row = id ? select_new(reader, TABLE_MAPPINGS, id, &number) : NULL;

	if (!row)
		return number;
	mapping = (struct profile_mapping){
		.start = sqlite3_column_int64(row, 0),
		.limit = sqlite3_column_int64(row, 1),
		.offset = sqlite3_column_int64(row, 2),
		.file = get_string(reader, sqlite3_column_int64(row, 3)),
		.build_id = get_string(reader, sqlite3_column_int64(row, 4)),
	};
	sqlite3_reset(row);
	return know(reader, TABLE_MAPPINGS, id, profile__mapping(reader->profile, &mapping));
}

static uint32_t get_location(struct reader *reader, int64_t id)
{
	struct profile_location location;
	uint32_t number;
	sqlite3_stmt *row = select_new(reader, TABLE_LOCATIONS, id, &number);

	if (!row)
		return number;
	location = (struct profile_location){
		.function = get_function(reader, sqlite3_column_int64(row, 0)),
		.line = sqlite3_column_int64(row, 1),
		.mapping = get_mapping(reader, sqlite3_column_int64(row, 2)),
		.address = sqlite3_column_int64(row, 3),
	};
	sqlite3_reset(row);
	if (reader->wrong)
		return 0;
	return know(reader, TABLE_LOCATIONS, id, profile__location(reader->profile, &location));
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
	uint32_t stack;
	sqlite3_stmt *row = select_new(reader, TABLE_STACKS, id, &stack);

	if (!row)
		return stack;
	stack = unpack_stack(reader, row);
	sqlite3_reset(row);
	return know(reader, TABLE_STACKS, id, stack);
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
	struct known_labels *known;
	json_t *labels;
	sqlite3_stmt *row;

	HASH_FIND(hh, reader->labels, &id, sizeof(id), known);
	if (known)
		return known;
	row = select_row(reader, TABLE_LABEL_SETS, id);
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

/* Adds a window's row with all its services, if the profile has its event. */
static void add_window(struct reader *reader, sqlite3_stmt *row, sqlite3_stmt *services)
{
	const char *text = (const char *)sqlite3_column_text(row, 7);
	struct event event;
	uint64_t period;
	int code, index;

	index = stored_event__parse(text, &event)
			? profile_events__find(reader->profile, event.name)
			: -1;
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
	char *select = xasprintf("SELECT id, start_ns, end_ns, rate_hz, events, lost, outcomes, %s"
				 " FROM windows WHERE end_ns > ?1 AND start_ns < ?2"
				 " ORDER BY end_ns, start_ns, id",
				 stored_event__column(reader->store));
	int code = database__prepare(reader->store, select, &windows);

	if (!code)
		code = database__prepare(
			reader->store,
			reader->store->version >= 2
				? "SELECT label_set, samples, sample_values FROM services"
				  " WHERE window = ?1"
				: "SELECT label_set, samples, NULL FROM services WHERE window = ?1",
			&services);
	if (!code) {
		sqlite3_bind_int64(windows, 1, reader->query->since_unix_ns);
		sqlite3_bind_int64(windows, 2, reader->query->until_unix_ns);
		while (!reader->wrong && (code = sqlite3_step(windows)) == SQLITE_ROW)
			add_window(reader, windows, services);
	}
	check(reader, code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code);
	sqlite3_finalize(services);
	sqlite3_finalize(windows);
	free(select);
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
	for (int table = 0; table < STORE_TABLES; table++) {
		free(reader->numbers[table].slots);
		sqlite3_finalize(reader->select[table]);
	}
}

char *store__read(struct store *store, const struct store_query *query, struct profile *profile,
		  struct store_found *found)
{
	struct reader reader = {
		.store = store, .query = query, .profile = profile, .found = found
	};

	memset(found, 0, sizeof(*found));
	/* One transaction: all reads see the same state. */
	if (!check(&reader, database__run(store, "BEGIN")))
		check(&reader, find_extent(&reader));
	for (int table = 0; table < STORE_TABLES && !reader.wrong; table++)
		check(&reader,
		      database__prepare(store, select_of(store, table), &reader.select[table]));
	if (!reader.wrong)
		add_windows(&reader);
	settle(&reader);
	if (!reader.wrong)
		complete(&reader);
	forget(&reader);
	database__run(store, "ROLLBACK");
	return reader.wrong;
}
