// SPDX-License-Identifier: BSD-2-Clause
/* The file of a store: permissions, locking, versions and damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "stores.h"

/* A file that exists keeps its permissions. */
static void a_new_store_is_private(void **state)
{
	struct place place = make_place();
	static const char *const files[] = { "", "/profiles.db", "/profiles.db-wal",
					     "/profiles.db-shm" };
	struct stat status;
	struct store *store;
	mode_t before = umask(0);
	struct profile *profile = synthetic__plain();

	(void)state;
	assert_int_equal(rmdir(place.folder), 0);
	store = open_store(&place);
	works(put(store, profile, 0));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *path = xasprintf("%s%s", place.folder, files[i]);

		assert_int_equal(stat(path, &status), 0);
		assert_int_equal(status.st_mode & 07777, i ? 0600 : 0700);
		free(path);
	}
	store__close(store);
	assert_int_equal(chmod(place.path, 0640), 0);
	store__close(open_store(&place));
	assert_int_equal(stat(place.path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	umask(before);
	profile__free(profile);
	remove_place(&place);
}

struct ending {
	struct store *store;
	_Atomic bool ended;
};

static void *end_soon(void *context)
{
	struct ending *ending = context;

	usleep(50000);
	ending->ended = true;
	store__close(ending->store);
	return NULL;
}

/* The next writer waits until the last one has closed the store.  A reader waits for nothing. */
static void one_writes_at_a_time(void **state)
{
	struct place place = make_place();
	struct ending ending = { .store = open_store(&place) };
	struct store *next;
	pthread_t thread;

	(void)state;
	profile__free(read_all(&place));
	assert_false(pthread_create(&thread, NULL, end_soon, &ending));
	next = open_store(&place);
	assert_true(ending.ended);
	pthread_join(thread, NULL);
	store__close(next);
	remove_place(&place);
}

static void refused(const struct place *place, enum store_access access, const char *text)
{
	struct store *store;

	fails_with(store__open(place->folder, access, &store), text);
	store__close(store);
}

static void folders_without_a_usable_store_are_refused(void **state)
{
	struct place place = make_place(), missing = { "/nowhere/store", "" },
		     file = { "/dev/null/store", "" };
	struct store *store;
	FILE *broken;

	(void)state;
	refused(&place, STORE_READ, "no store in");
	refused(&missing, STORE_WRITE, "run mkdir -p first");
	refused(&file, STORE_WRITE, "cannot create folder");
	store = open_store(&place);
	assert_int_equal(database__run(store, "PRAGMA user_version = 99"), SQLITE_OK);
	store__close(store);
	refused(&place, STORE_READ, "made by a newer pybpfprof");
	refused(&place, STORE_WRITE, "made by a newer pybpfprof");
	refused(&missing, STORE_READ, "no store in");
	broken = fopen(place.path, "w");
	fputs("this is no database, but a text that is longer than a database's header: "
	      "................................................................",
	      broken);
	fclose(broken);
	refused(&place, STORE_READ, "is corrupt");
	refused(&place, STORE_WRITE, "is corrupt");
	remove_place(&place);
}

static void another_database_is_refused(void **state)
{
	struct place place = make_place();
	sqlite3 *database;

	(void)state;
	assert_int_equal(sqlite3_open(place.path, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, "CREATE TABLE t (x)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
	refused(&place, STORE_WRITE, "not a store of profiles");
	remove_place(&place);
}

/* The schema of the first version. */
static const char schema_1[] =
	"CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE,"
	" until INTEGER NOT NULL);"
	"CREATE TABLE functions (id INTEGER PRIMARY KEY, name INTEGER NOT NULL,"
	" filename INTEGER NOT NULL, short_filename INTEGER NOT NULL, first_line INTEGER NOT NULL,"
	" kind INTEGER NOT NULL, nameless INTEGER NOT NULL, until INTEGER NOT NULL,"
	" UNIQUE (name, filename, short_filename, first_line, kind, nameless));"
	"CREATE TABLE locations (id INTEGER PRIMARY KEY, function INTEGER NOT NULL,"
	" line INTEGER NOT NULL, until INTEGER NOT NULL, UNIQUE (function, line));"
	"CREATE TABLE stacks (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL,"
	" locations BLOB NOT NULL, until INTEGER NOT NULL);"
	"CREATE INDEX stacks_by_hash ON stacks (hash);"
	"CREATE TABLE label_sets (id INTEGER PRIMARY KEY, labels TEXT NOT NULL UNIQUE,"
	" until INTEGER NOT NULL);"
	"CREATE TABLE windows (id INTEGER PRIMARY KEY AUTOINCREMENT, start_ns INTEGER NOT NULL,"
	" end_ns INTEGER NOT NULL, rate_hz REAL NOT NULL, events INTEGER NOT NULL,"
	" samples INTEGER NOT NULL, lost INTEGER NOT NULL, outcomes TEXT NOT NULL);"
	"CREATE INDEX windows_by_time ON windows (end_ns, start_ns);"
	"CREATE TABLE services (window INTEGER NOT NULL, label_set INTEGER NOT NULL,"
	" samples BLOB NOT NULL, PRIMARY KEY (window, label_set)) WITHOUT ROWID;"
	"CREATE INDEX strings_by_use ON strings (until);"
	"CREATE INDEX functions_by_use ON functions (until);"
	"CREATE INDEX locations_by_use ON locations (until);"
	"CREATE INDEX stacks_by_use ON stacks (until);"
	"CREATE INDEX label_sets_by_use ON label_sets (until);";

/* Rewrites the store as the first version would have written it. */
static void make_old(const struct place *place)
{
	static const char *const rows[] = {
		"strings SELECT *",
		"functions SELECT *",
		"locations SELECT id, function, line, until",
		"stacks SELECT *",
		"label_sets SELECT *",
		"windows SELECT id, start_ns, end_ns, rate_hz, events, samples, lost, outcomes",
		"services SELECT window, label_set, samples",
	};
	char *path = xasprintf("%s/old.db", place->folder);
	char *attach = xasprintf("ATTACH '%s' AS new", place->path);
	sqlite3 *database;

	assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(database, "PRAGMA auto_vacuum = INCREMENTAL;", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, schema_1, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, attach, NULL, NULL, NULL), SQLITE_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *sql = xasprintf("INSERT INTO main.%s FROM new.%.*s", rows[i],
				      (int)strcspn(rows[i], " "), rows[i]);

		assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
		free(sql);
	}
	assert_int_equal(sqlite3_exec(database,
				      "DETACH new; PRAGMA application_id = 0x70796270;"
				      "PRAGMA user_version = 1",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(database);
	assert_int_equal(rename(path, place->path), 0);
	free(attach);
	free(path);
}

static char *folded(const struct place *place)
{
	static const struct output_options options = { 0 };
	struct profile *profile = read_all(place);
	size_t size;
	char *text = synthetic__write(&output_folded, profile, &options, &size);

	profile__free(profile);
	return text;
}

/* A reader reads the old version as it is.  A writer upgrades it. */
static void an_old_store_is_upgraded(void **state)
{
	struct profile *profile = synthetic__machine(), *mixed = synthetic__mixed(), *back;
	struct place place = make_place();
	struct store *store = open_store(&place);
	char *before, *after;
	int64_t version;

	(void)state;
	works(put(store, profile, 0));
	works(put(store, profile, 1));
	store__close(store);
	before = folded(&place);
	make_old(&place);
	for (int i = 0; i < 3; i++) {
		after = folded(&place);
		assert_string_equal(after, before);
		free(after);
		if (i)
			continue;
		store = open_store(&place);
		assert_int_equal(database__number(store, "PRAGMA user_version", 0, &version),
				 SQLITE_OK);
		assert_int_equal(version, 2);
		store__close(store);
	}
	/* Old rows are found, and rows of new tables can be added. */
	store = open_store(&place);
	works(put(store, profile, 2));
	assert_int_equal(count_rows(store, "locations"), profile->location_count);
	works(put(store, mixed, 3));
	assert_int_equal(count_rows(store, "mappings"), 1);
	store__close(store);
	back = read_all(&place);
	assert_int_equal(samples_of(back), 3 * samples_of(profile) + samples_of(mixed));
	profile__free(back);
	profile__free(mixed);
	profile__free(profile);
	free(before);
	remove_place(&place);
}

/* A damaged store gives an error, and no made-up data. */
static void damage_is_noticed(void **state)
{
	static const char *const damages[] = {
		"DELETE FROM stacks WHERE id = 1",
		"DELETE FROM locations WHERE id = 1",
		"DELETE FROM functions WHERE id = 1",
		"DELETE FROM strings WHERE id = 1",
		"DELETE FROM label_sets WHERE id = 1",
		"UPDATE services SET samples = x'80'",
		"UPDATE stacks SET locations = x''",
		"UPDATE functions SET kind = 77",
		"UPDATE label_sets SET labels = '{'",
		"UPDATE windows SET outcomes = '{\"no such outcome\": 1}'",
		"UPDATE windows SET outcomes = '[]'",
		"UPDATE windows SET outcomes = '{\"python\": -1}'",
		"UPDATE windows SET rate_hz = 0",
		"UPDATE windows SET rate_hz = 9e999",
		"UPDATE windows SET events = -1",
		"UPDATE windows SET start_ns = -9223372036854775807",
		"UPDATE windows SET end_ns = start_ns - 1, start_ns = end_ns",
		"UPDATE label_sets SET labels = '[1]'",
		"UPDATE services SET samples = x'01ffffffffffffffffff01'",
		"DROP TABLE strings; CREATE TABLE strings AS SELECT id, NULL AS text FROM "
		"functions",
	};
	const struct store_query query = { 0, INT64_MAX, NULL, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct place place = make_place();
		struct store *store = open_store(&place);
		struct profile *profile = synthetic__plain(), *back = profile__new();
		struct store_found found;

		works(put(store, profile, 0));
		assert_int_equal(database__run(store, damages[i]), SQLITE_OK);
		fails_with(store__read(store, &query, back, &found), "is corrupt");
		profile__free(back);
		profile__free(profile);
		store__close(store);
		remove_place(&place);
	}
}

/* Checks the error of a read if the windows are not a table, but a view of what SQL selects. */
static void has_a_view(const char *sql, const char *expected)
{
	const struct store_query query = { 0, INT64_MAX, NULL, 0 };
	struct place place = make_place();
	struct profile *profile = profile__new();
	char *view = xasprintf("DROP TABLE windows; CREATE VIEW windows AS %s", sql), *wrong;
	struct store *store = open_store(&place);
	struct store_found found;
	sqlite3 *database;

	store__close(store);
	assert_int_equal(sqlite3_open(place.path, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, view, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
	works(store__open(place.folder, STORE_READ, &store));
	wrong = store__read(store, &query, profile, &found);
	assert_non_null(wrong);
	assert_null(strpbrk(wrong, "\n\x1b"));
	fails_with(wrong, expected);
	free(view);
	store__close(store);
	profile__free(profile);
	remove_place(&place);
}

/* A view may never end, and its name may contain control characters. */
static void views_are_not_run(void **state)
{
	(void)state;
	has_a_view("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
		   " SELECT i AS id, i AS start_ns, i AS end_ns FROM n",
		   "profiles.db: ");
	has_a_view("SELECT * FROM \"\n\x1b[31m\"", "\\x0a\\x1b[31m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_store_is_private),
		cmocka_unit_test(one_writes_at_a_time),
		cmocka_unit_test(folders_without_a_usable_store_are_refused),
		cmocka_unit_test(another_database_is_refused),
		cmocka_unit_test(an_old_store_is_upgraded),
		cmocka_unit_test(damage_is_noticed),
		cmocka_unit_test(views_are_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
