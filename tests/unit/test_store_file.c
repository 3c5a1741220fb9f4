// SPDX-License-Identifier: BSD-2-Clause
/* What becomes of a store's file: its limits, whose it is, a full disk, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "stores.h"

static void old_windows_go(void **state)
{
	const struct store_limits limits = { UINT64_MAX, 100 * SECOND };
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *first = synthetic__plain(), *later = synthetic__machine();

	(void)state;
	works(put(store, first, 0));
	for (int i = 1; i < 300; i++) {
		works(put(store, later, i));
		works(store__retain(store, &limits, EPOCH + i * SECOND));
	}
	assert_in_range(count_rows(store, "windows"), 100, 102);
	assert_int_equal(count_rows(store, "services"), 3 * count_rows(store, "windows"));
	/* What only the first window had is gone. */
	assert_int_equal(count_rows(store, "stacks"), 3);
	assert_int_equal(count_rows(store, "label_sets"), 3);
	profile__free(first);
	profile__free(later);
	store__close(store);
	remove_place(&place);
}

/* Windows of COUNT stacks that have little in common. */
static struct profile *other_tree(uint32_t number, uint32_t count)
{
	struct profile *profile = synthetic__new();
	uint32_t thread = synthetic__thread(profile, 1, "python3 app.py", 1, "");
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		uint32_t locations[2];

		snprintf(name, sizeof(name), "name_%u_%u", number, i);
		locations[0] = synthetic__location(profile, name, "/srv/", "app.py", i, i);
		locations[1] = synthetic__location(profile, "main", "/srv/", "app.py", 1, 1);
		synthetic__add(profile, OUTCOME_PYTHON, thread, locations, 2, 1);
	}
	return profile;
}

static void size_is_kept(void **state)
{
	const struct store_limits limits = { 1 << 20, INT64_MAX };
	struct place place = make_place();
	struct store *store = open_store(&place);
	uint64_t largest = 0, file = 0;
	struct stat status;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		struct profile *profile = other_tree(i, 100);

		works(put(store, profile, i));
		works(store__retain(store, &limits, EPOCH + i * SECOND));
		profile__free(profile);
		if (store__bytes(store) > largest)
			largest = store__bytes(store);
		assert_int_equal(stat(place.path, &status), 0);
		if ((uint64_t)status.st_size > file)
			file = status.st_size;
	}
	assert_in_range(largest, 1 << 19, (1 << 20) + (1 << 18));
	assert_in_range(file, 0, (1 << 20) + (1 << 18));
	assert_in_range(count_rows(store, "windows"), 10, 150);
	store__close(store);
	remove_place(&place);
}

/* So it is where each window adds more than what else is removed at a time. */
static void a_size_that_is_soon_reached_is_kept(void **state)
{
	const struct store_limits limits = { 8 << 20, INT64_MAX };
	struct place place = make_place();
	struct store *store = open_store(&place);
	uint64_t largest = 0;

	(void)state;
	for (uint32_t i = 0; i < 24; i++) {
		struct profile *profile = other_tree(i, 16000);

		works(put(store, profile, i));
		works(store__retain(store, &limits, EPOCH + i * SECOND));
		profile__free(profile);
		if (store__bytes(store) > largest)
			largest = store__bytes(store);
	}
	assert_in_range(largest, 4 << 20, 14 << 20);
	store__close(store);
	remove_place(&place);
}

/* What is there already keeps its permissions. */
static void it_is_nobody_elses(void **state)
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

/* No room for a window: it alone is missing. */
static void a_full_disk_costs_a_window(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__machine(), *large = synthetic__tree(5000, 1, 1), *back;
	struct store_found found;
	int64_t pages;
	char *limit;

	(void)state;
	works(put(store, profile, 0));
	assert_int_equal(database__number(store, "PRAGMA page_count", 0, &pages), SQLITE_OK);
	limit = xasprintf("PRAGMA max_page_count = %d", (int)pages + 10);
	assert_int_equal(database__run(store, limit), SQLITE_OK);
	free(limit);
	fails_with(put(store, large, 1), "no room");
	works(put(store, profile, 2));
	assert_int_equal(database__run(store, "PRAGMA max_page_count = 100000"), SQLITE_OK);
	works(put(store, large, 3));
	back = read_some(&place, 0, 3, NULL, 0, &found);
	assert_int_equal(found.windows, 2);
	assert_int_equal(samples_of(back), 200);
	profile__free(back);
	profile__free(large);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

struct ending {
	struct store *store;
	_Atomic bool ended;
};

static void *end_soon(void *context)
{
	struct ending *ending = context;

	usleep(300000);
	ending->ended = true;
	store__close(ending->store);
	return NULL;
}

/* Who comes next waits until the one before has ended; who reads waits for nobody. */
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

static void what_is_no_store_is_refused(void **state)
{
	struct place place = make_place(), missing = { "/nowhere/store", "" },
		     file = { "/dev/null/store", "" };
	struct store *store;
	FILE *broken;

	(void)state;
	refused(&place, STORE_READ, "no store in");
	refused(&missing, STORE_WRITE, "mkdir -p it first");
	refused(&file, STORE_WRITE, "cannot be made");
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
	refused(&place, STORE_READ, "is broken");
	refused(&place, STORE_WRITE, "is broken");
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
	refused(&place, STORE_WRITE, "no store of profiles");
	remove_place(&place);
}

/* What is not whole is said, and nothing is made up. */
static void missing_parts_are_noticed(void **state)
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
		fails_with(store__read(store, &query, back, &found), "is broken");
		profile__free(back);
		profile__free(profile);
		store__close(store);
		remove_place(&place);
	}
}

/* What STORE_READ finds where the windows are a view of what SQL selects. */
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

/* A view may never end; and what it is called is nothing to a terminal. */
static void nothing_runs_in_a_database(void **state)
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
		cmocka_unit_test(old_windows_go),
		cmocka_unit_test(size_is_kept),
		cmocka_unit_test(a_size_that_is_soon_reached_is_kept),
		cmocka_unit_test(it_is_nobody_elses),
		cmocka_unit_test(a_full_disk_costs_a_window),
		cmocka_unit_test(one_writes_at_a_time),
		cmocka_unit_test(what_is_no_store_is_refused),
		cmocka_unit_test(another_database_is_refused),
		cmocka_unit_test(missing_parts_are_noticed),
		cmocka_unit_test(nothing_runs_in_a_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
