// SPDX-License-Identifier: BSD-2-Clause
/* The input: rows of a store's tables, as anyone who can write to its folder may leave them, or
 * the whole database file.  The result is written in one of the formats. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "output/output.h"
#include "store/database.h"

/* Always exists. */
#define FOLDER "/tmp"

#define ROWS_MAX 200

enum kind { NOTHING, SMALL_NUMBER, NUMBER, REAL, TEXT, BLOB, KINDS };

/* The tables without a store's constraints on rows. */
static const char tables[] = "PRAGMA application_id = 1887003248; PRAGMA user_version = 1;"
			     "CREATE TABLE strings (id, text);"
			     "CREATE TABLE functions (id, name, filename, short_filename,"
			     " first_line, kind, nameless);"
			     "CREATE TABLE locations (id, function, line);"
			     "CREATE TABLE stacks (id, locations);"
			     "CREATE TABLE label_sets (id, labels);"
			     "CREATE TABLE windows (id, start_ns, end_ns, rate_hz, events, lost,"
			     " outcomes);"
			     "CREATE TABLE services (window, label_set, samples);";

static const char *const inserts[] = {
	"INSERT INTO strings VALUES (?, ?)",
	"INSERT INTO functions VALUES (?, ?, ?, ?, ?, ?, ?)",
	"INSERT INTO locations VALUES (?, ?, ?)",
	"INSERT INTO stacks VALUES (?, ?)",
	"INSERT INTO label_sets VALUES (?, ?)",
	"INSERT INTO windows VALUES (?, ?, ?, ?, ?, ?, ?)",
	"INSERT INTO services VALUES (?, ?, ?)",
};

#define TABLES (sizeof(inserts) / sizeof(inserts[0]))

static struct input input;

int __real_sqlite3_open_v2(const char *path, sqlite3 **database, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **database, int flags, const char *vfs);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return 0;
}

static void bind(sqlite3_stmt *statement, int column)
{
	enum kind kind = input__number(&input, 1) % KINDS;
	char bytes[UINT8_MAX];
	double real;
	size_t length;

	switch (kind) {
	case SMALL_NUMBER:
		sqlite3_bind_int64(statement, column, (int8_t)input__number(&input, 1));
		break;
	case NUMBER:
		sqlite3_bind_int64(statement, column, (int64_t)input__number(&input, 8));
		break;
	case REAL:
		input__take(&input, &real, sizeof(real));
		sqlite3_bind_double(statement, column, real);
		break;
	case TEXT:
	case BLOB:
		length = input__number(&input, 1);
		length = length < input.left ? length : input.left;
		input__take(&input, bytes, length);
		if (kind == TEXT)
			sqlite3_bind_text(statement, column, bytes, length, SQLITE_TRANSIENT);
		else
			sqlite3_bind_blob(statement, column, bytes, length, SQLITE_TRANSIENT);
		break;
	default:
		break;
	}
}

static void put_rows(sqlite3 *database)
{
	sqlite3_stmt *statements[TABLES];

	CHECK(!sqlite3_exec(database, tables, NULL, NULL, NULL));
	for (size_t i = 0; i < TABLES; i++)
		CHECK(!sqlite3_prepare_v2(database, inserts[i], -1, &statements[i], NULL));
	for (int rows = 0; input.left && rows < ROWS_MAX; rows++) {
		sqlite3_stmt *statement = statements[input__number(&input, 1) % TABLES];

		for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++)
			bind(statement, i);
		sqlite3_step(statement);
		sqlite3_reset(statement);
		sqlite3_clear_bindings(statement);
	}
	for (size_t i = 0; i < TABLES; i++)
		sqlite3_finalize(statements[i]);
}

/* The linker directs calls of sqlite3_open_v2() and access() here (see the Makefile). */
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **database, int flags, const char *vfs)
{
	int code = __real_sqlite3_open_v2(":memory:", database,
					  SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
	uint8_t *file;

	(void)path;
	CHECK(flags & SQLITE_OPEN_READONLY);
	if (input__number(&input, 1) % 2) {
		put_rows(*database);
		return code;
	}
	file = sqlite3_malloc64(input.left + 1);
	memcpy(file, input.next, input.left);
	return sqlite3_deserialize(*database, "main", file, input.left, input.left + 1,
				   SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
}

static void check(const struct profile *profile, const struct store_found *found)
{
	CHECK(profile->duration_ns >= 0);
	CHECK(!found->windows || (isfinite(profile->rate_hz) && profile->rate_hz > 0));
	CHECK(found->windows || !profile->sample_count);
	for (size_t i = 0; i < profile->stack_count; i++)
		CHECK(profile->stacks[i].depth);
}

static void write_as(const struct output_format *format, const struct profile *profile)
{
	const struct output_options shown = { .by_process = true, .title = "fuzzed" };
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	CHECK(!format->write(profile, &shown, file));
	CHECK(!fclose(file) && size);
	free(text);
}

/* Writes one format, which the input chooses: writing takes longer than all the rest. */
static void write_profile(const struct profile *profile, size_t choice)
{
	size_t count = 0;

	while (output_formats[count])
		count++;
	write_as(output_formats[choice % count], profile);
}

static void read_store(const struct store_label *labels, size_t count, size_t size)
{
	const struct store_query query = { 0, INT64_MAX, labels, count };
	struct profile *profile = profile__new();
	struct store_found found;
	struct store *store;
	char *wrong = store__open(FOLDER, STORE_READ, &store);

	if (!wrong)
		wrong = store__read(store, &query, profile, &found);
	if (!wrong && found.windows) {
		check(profile, &found);
		if (profile->sample_count)
			write_profile(profile, size);
	}
	for (const char *at = wrong; at && *at; at++)
		CHECK((unsigned char)*at >= ' ' && *at != '\x7f');
	free(wrong);
	store__close(store);
	profile__free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct store_label label = { "service_name", "web" };

	input = (struct input){ bytes, size };
	read_store(NULL, 0, size);
	input = (struct input){ bytes, size };
	read_store(&label, 1, size);
	return 0;
}
