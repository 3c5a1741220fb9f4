// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a window to the database.
 *
 * Each row that a window uses is looked up once, and added if it is new.  Column "until" says up to
 * which window a row may be in use.  Updating it with each window would cost more than all the
 * rest, so a row that is used again gets an allowance: an eighth of the number of windows in the
 * store.  Unused rows stay that much longer.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "services/service.h"
#include "store/database.h"
#include "store/packing.h"
#include "store/room.h"

/* The allowance, as a part of the windows in the store. */
#define AHEAD_PART 8

/* A window that is being written.  The arrays map the profile's indices to row numbers; 0: not
 * looked up yet. */
struct writer {
	struct store *store;
	const struct labelled_window *window;
	uint32_t event;		     /* the event that is being written */
	int64_t numbers[EVENTS_MAX]; /* of the window's row of each event */
	int64_t number;		     /* the last of these */
	int64_t last, until;
	int64_t *strings, *functions, *mappings, *locations, *stacks;
	int code;    /* SQLite's code of the first error */
	char *wrong; /* the first error */
};

/* The statements of a table whose rows windows share: one finds a row by its keys, the other adds
 * it or extends its use. */
#define STATEMENTS(name, columns, marks, count)                                                    \
	{                                                                                          \
		"SELECT id, until FROM " name " WHERE (" columns ") = (" marks ")",                \
			"INSERT INTO " name " (" columns ", id, until) VALUES (" marks ", ?8, ?9)" \
			" ON CONFLICT DO UPDATE SET until = excluded.until",                       \
			count                                                                      \
	}
#define MARK_ID	   8
#define MARK_UNTIL 9

static const struct {
	const char *find, *put;
	int keys;
} statements[STORE_TABLES] = {
	[TABLE_STRINGS] = STATEMENTS("strings", "text", "?1", 1),
	[TABLE_FUNCTIONS] = STATEMENTS("functions",
				       "name, filename, short_filename, first_line, kind, nameless",
				       "?1, ?2, ?3, ?4, ?5, ?6", 6),
	[TABLE_MAPPINGS] = STATEMENTS("mappings", "first, last, file_offset, file, build_id",
				      "?1, ?2, ?3, ?4, ?5", 5),
	[TABLE_LOCATIONS] =
		STATEMENTS("locations", "function, line, mapping, address", "?1, ?2, ?3, ?4", 4),
	[TABLE_STACKS] = STATEMENTS("stacks", "hash, locations", "?1, ?2", 2),
	[TABLE_LABEL_SETS] = STATEMENTS("label_sets", "labels", "?1", 1),
};

/* Prepares SQL, unless an earlier window did. */
static int prepare_once(struct store *store, const char *sql, sqlite3_stmt **statement)
{
	return *statement ? SQLITE_OK : database__prepare(store, sql, statement);
}

static int prepare(struct store *store)
{
	int code = prepare_once(store,
				"INSERT INTO windows (start_ns, end_ns, rate_hz, events, samples,"
				" lost, outcomes, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
				&store->put_window)
			   ?: prepare_once(store,
					   "INSERT INTO services (window, label_set, samples,"
					   " sample_values) VALUES (?1, ?2, ?3, ?4)",
					   &store->put_service);

	for (int table = 0; table < STORE_TABLES && !code; table++)
		code = prepare_once(store, statements[table].find, &store->find[table])
			       ?: prepare_once(store, statements[table].put, &store->put[table]);
	return code;
}

/* Records the first error. */
static void check(struct writer *writer, int code)
{
	if (!code || writer->wrong)
		return;
	writer->code = code;
	writer->wrong = database__explain(writer->store);
}

/* Runs STATEMENT; returns whether it has a row, which stays valid until the reset. */
static bool step(struct writer *writer, sqlite3_stmt *statement)
{
	int code = writer->wrong ? SQLITE_DONE : sqlite3_step(statement);

	check(writer, code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code);
	return code == SQLITE_ROW;
}

/* Keys are bound to both statements that use them. */
static void bind_number(struct writer *writer, enum store_table table, int key, int64_t number)
{
	sqlite3_bind_int64(writer->store->find[table], key, number);
	sqlite3_bind_int64(writer->store->put[table], key, number);
}

static void bind_text(struct writer *writer, enum store_table table, const char *text)
{
	sqlite3_bind_text(writer->store->find[table], 1, text, -1, SQLITE_STATIC);
	sqlite3_bind_text(writer->store->put[table], 1, text, -1, SQLITE_STATIC);
}

static void bind_bytes(struct writer *writer, enum store_table table, int key,
		       const struct packed *packed)
{
	sqlite3_bind_blob(writer->store->find[table], key, packed->bytes, packed->length,
			  SQLITE_STATIC);
	sqlite3_bind_blob(writer->store->put[table], key, packed->bytes, packed->length,
			  SQLITE_STATIC);
}

/* The number of the row whose keys are bound, which is added if it is new. */
static int64_t intern(struct writer *writer, enum store_table table)
{
	sqlite3_stmt *find = writer->store->find[table], *put = writer->store->put[table];
	int64_t id = 0, until = 0;

	if (step(writer, find)) {
		id = sqlite3_column_int64(find, 0);
		until = sqlite3_column_int64(find, 1);
	}
	sqlite3_reset(find);
	if (writer->wrong || (id && until >= writer->number))
		return id;
	if (id)
		sqlite3_bind_int64(put, MARK_ID, id);
	else
		sqlite3_bind_null(put, MARK_ID);
	sqlite3_bind_int64(put, MARK_UNTIL, id ? writer->until : writer->last);
	step(writer, put);
	sqlite3_reset(put);
	return id ?: sqlite3_last_insert_rowid(writer->store->database);
}

/* The same for a row whose keys are the numbers KEYS. */
static int64_t intern_numbers(struct writer *writer, enum store_table table, const int64_t *keys)
{
	for (int i = 0; i < statements[table].keys; i++)
		bind_number(writer, table, i + 1, keys[i]);
	return intern(writer, table);
}

static int64_t put_string(struct writer *writer, string_id string)
{
	int64_t *id = &writer->strings[string];

	if (!*id) {
		bind_text(writer, TABLE_STRINGS, writer->window->profile->strings[string]);
		*id = intern(writer, TABLE_STRINGS);
	}
	return *id;
}

static int64_t put_function(struct writer *writer, uint32_t index)
{
	const struct profile_function *function = &writer->window->profile->functions[index];
	int64_t kind = function->kind | (function->of_interpreter ? STORE_KIND_INTERPRETER : 0);
	int64_t *id = &writer->functions[index];

	if (!*id) {
		*id = intern_numbers(
			writer, TABLE_FUNCTIONS,
			(const int64_t[]){ put_string(writer, function->name),
					   put_string(writer, function->filename),
					   put_string(writer, function->short_filename),
					   function->first_line, kind, function->nameless });
	}
	return *id;
}

static int64_t put_mapping(struct writer *writer, uint32_t index)
{
	const struct profile_mapping *mapping = &writer->window->profile->mappings[index];
	int64_t *id = &writer->mappings[index];

	if (index && !*id) {
		*id = intern_numbers(writer, TABLE_MAPPINGS,
				     (const int64_t[]){ mapping->start, mapping->limit,
							mapping->offset,
							put_string(writer, mapping->file),
							put_string(writer, mapping->build_id) });
	}
	return *id;
}

static int64_t put_location(struct writer *writer, uint32_t index)
{
	const struct profile_location *location = &writer->window->profile->locations[index];
	int64_t *id = &writer->locations[index];

	if (!*id) {
		*id = intern_numbers(writer, TABLE_LOCATIONS,
				     (const int64_t[]){ put_function(writer, location->function),
							location->line,
							put_mapping(writer, location->mapping),
							location->address });
	}
	return *id;
}

/* FNV-1a.  Only an index: the stack's bytes are compared too. */
static int64_t hash_of(const struct packed *packed)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < packed->length; i++)
		hash = (hash ^ packed->bytes[i]) * 0x100000001b3ULL;
	return (int64_t)hash;
}

static int64_t put_stack(struct writer *writer, uint32_t index)
{
	const struct profile_stack *stack = &writer->window->profile->stacks[index];
	int64_t *id = &writer->stacks[index];

	if (!*id) {
		struct packed packed = { 0 };

		for (uint32_t i = 0; i < stack->depth; i++)
			packed__add(&packed, put_location(writer, stack->locations[i]));
		bind_number(writer, TABLE_STACKS, 1, hash_of(&packed));
		bind_bytes(writer, TABLE_STACKS, 2, &packed);
		*id = intern(writer, TABLE_STACKS);
		free(packed.bytes);
	}
	return *id;
}

/* A sample in row numbers of the database. */
struct row {
	int64_t label_set, stack;
	struct amount amount;
};

static int compare_rows(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	if (a->label_set != b->label_set)
		return a->label_set < b->label_set ? -1 : 1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

static int64_t put_labels(struct writer *writer, json_t *labels)
{
	char *text = service__key(labels);
	int64_t id;

	bind_text(writer, TABLE_LABEL_SETS, text);
	id = intern(writer, TABLE_LABEL_SETS);
	free(text);
	return id;
}

/* The samples of the event, sorted by service and stack; returns their number.  The caller frees
 * *RESULT. */
static size_t make_rows(struct writer *writer, struct row **result)
{
	const struct profile *profile = writer->window->profile;
	int64_t *label_sets = xcalloc(profile->thread_count + 1, sizeof(*label_sets));
	struct row *rows = xcalloc(profile->sample_count + 1, sizeof(*rows));
	size_t count = 0;

	for (size_t i = 0; i < profile->sample_count && !writer->wrong; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		int64_t *label_set = &label_sets[sample->thread];

		if (sample->event != writer->event)
			continue;
		if (!*label_set)
			*label_set = put_labels(
				writer, labelled_window__labels(writer->window, sample->thread));
		rows[count++] = (struct row){ *label_set, put_stack(writer, sample->stack),
					      sample->amount };
	}
	qsort(rows, count, sizeof(*rows), compare_rows);
	free(label_sets);
	*result = rows;
	return count;
}

/* The period of the event, in its unit. */
static uint64_t period_of(const struct writer *writer)
{
	return writer->window->profile->events[writer->event].period
		       ?: ledger__period_ns(writer->window->ledgers[writer->event].rate_hz);
}

/* Writes the service whose rows begin at FIRST; returns where those of the next one begin. */
static size_t put_service(struct writer *writer, const struct row *rows, size_t first, size_t count)
{
	sqlite3_stmt *statement = writer->store->put_service;
	uint64_t period = period_of(writer);
	struct packed packed = { 0 }, values = { 0 };
	bool told = false;
	int64_t before = 0;
	size_t next = first;

	while (next < count && rows[next].label_set == rows[first].label_set) {
		int64_t stack = rows[next].stack;
		struct amount sum = { 0 };

		for (; next < count && rows[next].label_set == rows[first].label_set &&
		       rows[next].stack == stack;
		     next++)
			amount__add(&sum, rows[next].amount);
		packed__add(&packed, stack - before);
		packed__add(&packed, sum.count);
		packed__add(&values, sum.value);
		told |= sum.value != sum.count * period;
		before = stack;
	}
	sqlite3_bind_int64(statement, 1, writer->numbers[writer->event]);
	sqlite3_bind_int64(statement, 2, rows[first].label_set);
	sqlite3_bind_blob(statement, 3, packed.bytes, packed.length, SQLITE_STATIC);
	sqlite3_bind_blob(statement, 4, told ? values.bytes : NULL, values.length, SQLITE_STATIC);
	step(writer, statement);
	sqlite3_reset(statement);
	free(packed.bytes);
	free(values.bytes);
	return next;
}

/* The outcomes that are not 0, as JSON by name; the caller frees it. */
static char *outcomes_text(const struct ledger *ledger)
{
	json_t *outcomes = json_object();
	char *text;

	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		if (ledger->outcomes[outcome])
			json_object_set_new(outcomes, outcome__name(outcome),
					    json_integer(ledger->outcomes[outcome]));
	text = json_dumps(outcomes, JSON_COMPACT);
	json_decref(outcomes);
	return text;
}

/* The event of a window's row; the caller frees it. */
static char *event_text(const struct profile_event *event)
{
	if (!event->period)
		return xstrdup(STORE_CLOCK);
	/* A wait's value is its length. */
	if (event__named(event->name).source->program == PROGRAM_SWITCHES)
		return xstrdup(event->name);
	return xasprintf("%s:%" PRIu64, event->name, event->period);
}

/* The window's row for the event. */
static void put_window(struct writer *writer)
{
	const struct labelled_window *window = writer->window;
	const struct ledger *ledger = &window->ledgers[writer->event];
	sqlite3_stmt *statement = writer->store->put_window;
	char *outcomes = outcomes_text(ledger);
	const struct profile_event *event = &window->profile->events[writer->event];
	char *name = event_text(event);

	sqlite3_bind_int64(statement, 1, window->start_unix_ns);
	sqlite3_bind_int64(statement, 2, window->end_unix_ns);
	sqlite3_bind_double(statement, 3, ledger->rate_hz);
	sqlite3_bind_int64(statement, 4, ledger->events);
	sqlite3_bind_int64(statement, 5, ledger__samples(ledger));
	sqlite3_bind_int64(statement, 6, ledger->lost);
	sqlite3_bind_text(statement, 7, outcomes, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 8, name, -1, SQLITE_STATIC);
	step(writer, statement);
	sqlite3_reset(statement);
	free(outcomes);
	free(name);
	writer->number = sqlite3_last_insert_rowid(writer->store->database);
	writer->numbers[writer->event] = writer->number;
}

/* Sets the window until which rows are now in use. */
static void look_ahead(struct writer *writer)
{
	int64_t oldest = 0;

	check(writer, database__number(writer->store, "SELECT min(id) FROM windows", 0, &oldest));
	writer->last = writer->number + 1;
	writer->until = writer->last + (writer->number - oldest) / AHEAD_PART;
}

static void put_samples(struct writer *writer)
{
	struct row *rows;
	size_t count = make_rows(writer, &rows), next = 0;

	while (next < count && !writer->wrong)
		next = put_service(writer, rows, next, count);
	free(rows);
}

static void put_all(struct writer *writer)
{
	uint32_t count = writer->window->profile->event_count;

	/* All rows first: rows that several events use are in use until the last one. */
	for (writer->event = 0; writer->event < count; writer->event++)
		put_window(writer);
	look_ahead(writer);
	for (writer->event = 0; writer->event < count; writer->event++)
		put_samples(writer);
}

static void write_window(struct writer *writer)
{
	struct store *store = writer->store;
	uint64_t before = store__bytes(store), after;

	check(writer, prepare(store));
	if (!writer->wrong)
		check(writer, database__run(store, "BEGIN IMMEDIATE"));
	if (!writer->wrong)
		put_all(writer);
	after = store__bytes(store);
	if (!writer->wrong)
		check(writer, database__run(store, "COMMIT"));
	if (writer->wrong)
		database__roll_back(store);
	else
		store->added_bytes = after > before ? after - before : 0;
}

/* *CODE: SQLite's code of the first error. */
static char *try_to_put(struct store *store, const struct labelled_window *window, int *code)
{
	const struct profile *profile = window->profile;
	struct writer writer = { .store = store, .window = window };

	writer.strings = xcalloc(profile->string_count + 1, sizeof(int64_t));
	writer.functions = xcalloc(profile->function_count + 1, sizeof(int64_t));
	writer.mappings = xcalloc(profile->mapping_count + 1, sizeof(int64_t));
	writer.locations = xcalloc(profile->location_count + 1, sizeof(int64_t));
	writer.stacks = xcalloc(profile->stack_count + 1, sizeof(int64_t));
	write_window(&writer);
	free(writer.strings);
	free(writer.functions);
	free(writer.mappings);
	free(writer.locations);
	free(writer.stacks);
	*code = writer.code;
	return writer.wrong;
}

char *store__put(struct store *store, const struct labelled_window *window)
{
	int code;
	char *wrong = try_to_put(store, window, &code);

	if (!database__lacks_room(store, code))
		return wrong;
	free(wrong);
	wrong = room__make(store);
	return wrong ? wrong : try_to_put(store, window, &code);
}
