// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "database.h"
#include "packing.h"
#include "sums.h"
#include "synthetic.h"

#define SECOND 1000000000LL

/* When the first window begins. */
#define EPOCH 1700000000000000000LL

static const struct output_options plain = { .by_process = true, .title = "test" };

struct place {
	char folder[32], path[64];
};

static struct place make_place(void)
{
	struct place place = { "/tmp/test_store.XXXXXX", "" };

	assert_non_null(mkdtemp(place.folder));
	snprintf(place.path, sizeof(place.path), "%s/profiles.db", place.folder);
	return place;
}

static void remove_place(const struct place *place)
{
	char *command = xasprintf("rm -rf %s", place->folder);

	assert_int_equal(system(command), 0);
	free(command);
}

static void fails_with(char *wrong, const char *text)
{
	assert_non_null(wrong);
	if (!strstr(wrong, text))
		fail_msg("%s", wrong);
	free(wrong);
}

static void works(char *wrong)
{
	if (wrong)
		fail_msg("%s", wrong);
}

static struct store *open_store(const struct place *place)
{
	struct store *store;

	works(store__open(place->folder, STORE_WRITE, &store));
	return store;
}

/* Each process's labels: its short name as the service's. */
static json_t **make_labels(const struct profile *profile)
{
	json_t **labels = xcalloc(profile->process_count, sizeof(*labels));

	for (size_t i = 0; i < profile->process_count; i++) {
		const struct profile_process *process = &profile->processes[i];

		labels[i] = json_pack("{s:s, s:s}", "service_name",
				      profile->strings[process->short_name], "python_version",
				      profile->strings[process->python_version]);
	}
	return labels;
}

/* Puts PROFILE as the window of the second NUMBER; REST: what it has at another rate. */
static char *put_rates(struct store *store, const struct profile *profile, int number,
		       const struct profile *rest)
{
	json_t **labels = make_labels(profile);
	struct labelled_window window = {
		.start_unix_ns = EPOCH + number * SECOND,
		.end_unix_ns = EPOCH + (number + 1) * SECOND,
		.profile = profile,
		.ledger = &profile->ledger,
		.labels = labels,
	}, other = window;
	char *wrong;

	if (rest) {
		other.profile = rest;
		other.ledger = &rest->ledger;
		window.next = &other;
		window.rates = other.rates = 2;
		other.rate = 1;
	}
	wrong = store__put(store, &window);

	for (size_t i = 0; i < profile->process_count; i++)
		json_decref(labels[i]);
	free(labels);
	return wrong;
}

static char *put(struct store *store, const struct profile *profile, int number)
{
	return put_rates(store, profile, number, NULL);
}

/* What the windows of the seconds from FIRST to BEYOND come to. */
static struct profile *read_some(const struct place *place, int first, int beyond,
				 const struct store_label *labels, size_t count,
				 struct store_found *found)
{
	struct store_query query = { EPOCH + first * SECOND, EPOCH + beyond * SECOND, labels,
				     count };
	struct profile *profile = profile__new();
	struct store *store;

	works(store__open(place->folder, STORE_READ, &store));
	works(store__read(store, &query, profile, found));
	store__close(store);
	return profile;
}

static struct profile *read_all(const struct place *place)
{
	struct store_found found;

	return read_some(place, 0, 1000000, NULL, 0, &found);
}

static int64_t count_rows(struct store *store, const char *table)
{
	char *sql = xasprintf("SELECT count(*) FROM %s", table);
	int64_t count;

	assert_int_equal(database__number(store, sql, 0, &count), SQLITE_OK);
	free(sql);
	return count;
}

static uint64_t samples_of(const struct profile *profile)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < profile->sample_count; i++)
		samples += profile->samples[i].count;
	return samples;
}

static void numbers_are_packed(void **state)
{
	const uint64_t numbers[] = { 0, 1, 127, 128, 300, 1ULL << 32, UINT64_MAX };
	const size_t count = sizeof(numbers) / sizeof(numbers[0]);
	struct packed packed = { 0 };
	const uint8_t *at;
	uint64_t number;

	(void)state;
	for (size_t i = 0; i < count; i++)
		packed__add(&packed, numbers[i]);
	at = packed.bytes;
	for (size_t i = 0; i < count; i++) {
		assert_true(packed__take(&at, packed.bytes + packed.length, &number));
		assert_true(number == numbers[i]);
	}
	assert_false(packed__take(&at, packed.bytes + packed.length, &number));
	at = packed.bytes + packed.length - 2;
	assert_false(packed__take(&at, packed.bytes + packed.length - 1, &number));
	free(packed.bytes);
}

static void sums_add_up(void **state)
{
	struct sums sums = { 0 };
	uint64_t all = 0, keys = 0;

	(void)state;
	for (uint64_t i = 0; i < 30000; i++)
		sums__add(&sums, 1 + i % 1000 * 1000003, i);
	for (size_t i = 0; i < sums.capacity; i++) {
		keys += !!sums.slots[i].key;
		all += sums.slots[i].value;
	}
	assert_int_equal(sums.count, 1000);
	assert_int_equal(keys, 1000);
	assert_int_equal(all, 30000ULL * 29999 / 2);
	free(sums.slots);
}

/* What was put comes back: each stack with its service and its count, and the ledger. */
static void windows_come_back(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__machine(), *back;
	struct store_found found;
	char *text;
	size_t size;

	(void)state;
	works(put(store, profile, 0));
	works(put(store, profile, 1));
	back = read_some(&place, 0, 10, NULL, 0, &found);
	assert_int_equal(found.windows, 2);
	assert_int_equal(found.services, 3);
	assert_int_equal(back->ledger.events, 200);
	assert_memory_equal(&back->ledger.outcomes[OUTCOME_NO_PYTHON], &(uint64_t){ 20 }, 8);
	assert_true(back->start_unix_ns == EPOCH);
	assert_true(back->duration_ns == 2 * SECOND);
	assert_true(back->rate_hz == 100);
	text = synthetic__write(&output_folded, back, &plain, &size);
	assert_string_equal(
		text, "service \"\";[no Python on this thread] 20\n"
		      "service \"report.py\";main (app.py:10);fib (pkg/fib.py:5) 60\n"
		      "service \"worker.py\";main (app.py:10);Loader.load (pkg/load.py:20) 100\n"
		      "service \"worker.py\";main (app.py:10);fib (pkg/fib.py:5) 20\n");
	free(text);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

static void hostile_names_come_back(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__hostile(), *back;

	(void)state;
	works(put(store, profile, 0));
	back = read_all(&place);
	assert_int_equal(samples_of(back), samples_of(profile));
	assert_int_equal(back->stack_count, profile->stack_count);
	for (size_t i = 0; i < SYNTHETIC_NAMES; i++) {
		char *name =
			xstrdup(profile->strings[profile__string(profile, synthetic_names[i])]);
		size_t strings = back->string_count;

		profile__string(back, name);
		assert_int_equal(back->string_count, strings);
		free(name);
	}
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

static void everything_is_held_once(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__plain();
	int64_t before[STORE_TABLES];

	(void)state;
	works(put(store, profile, 0));
	for (int i = 0; i < STORE_TABLES; i++)
		before[i] = count_rows(store, store_tables[i].name);
	assert_int_equal(before[TABLE_STACKS], 5);
	for (int i = 1; i < 40; i++)
		works(put(store, profile, i));
	for (int i = 0; i < STORE_TABLES; i++)
		assert_int_equal(count_rows(store, store_tables[i].name), before[i]);
	assert_int_equal(count_rows(store, "windows"), 40);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

static void windows_are_found_by_time(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__plain(), *back;
	struct store_found found;

	(void)state;
	for (int i = 0; i < 10; i++)
		works(put(store, profile, i));
	back = read_some(&place, 3, 6, NULL, 0, &found);
	assert_int_equal(found.windows, 3);
	assert_int_equal(samples_of(back), 330);
	assert_true(found.first_ns == EPOCH && found.last_ns == EPOCH + 10 * SECOND);
	profile__free(back);
	back = read_some(&place, 100, 200, NULL, 0, &found);
	assert_int_equal(found.windows, 0);
	assert_int_equal(back->ledger.events, 0);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

static void services_are_found_by_labels(void **state)
{
	const struct store_label both[] = { { "service_name", "worker.py" },
					    { "service_name", "report.py" },
					    { "python_version", "3.11.7" } };
	const struct store_label other = { "python_version", "3.12.1" };
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__machine(), *back;
	struct store_found found;

	(void)state;
	works(put(store, profile, 0));
	back = read_some(&place, 0, 1, both, 1, &found);
	assert_int_equal(found.services, 1);
	assert_int_equal(samples_of(back), 60);
	assert_int_equal(back->ledger.events, 60);
	assert_true(ledger__adds_up(&back->ledger));
	profile__free(back);
	back = read_some(&place, 0, 1, both, 3, &found);
	assert_int_equal(samples_of(back), 90);
	profile__free(back);
	back = read_some(&place, 0, 1, &other, 1, &found);
	assert_int_equal(samples_of(back), 0);
	assert_int_equal(found.services, 0);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* What a filtered ledger says of each sample, its stack says. */
static void outcomes_are_told_by_stacks(void **state)
{
	const struct store_label label = { "python_version", "3.11.7" };
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__plain(), *back;
	struct store_found found;

	(void)state;
	works(put(store, profile, 0));
	back = read_some(&place, 0, 1, &label, 1, &found);
	for (int i = 0; i < OUTCOME_COUNT; i++)
		assert_int_equal(back->ledger.outcomes[i], profile->ledger.outcomes[i]);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* As many samples at half the rate stand for twice the time, whichever came first; where there is
 * one rate alone, each is what it is. */
static void rates_are_weighed(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__plain(), *back;
	struct store_found found;
	uint64_t samples = samples_of(profile);

	(void)state;
	profile->ledger.rate_hz = 50;
	profile->ledger.lost = 7;
	profile->ledger.events += 7;
	profile->ledger.outcomes[OUTCOME_PYTHON]--;
	profile->ledger.outcomes[OUTCOME_LINE_UNKNOWN]++;
	works(put(store, profile, 0));
	back = read_some(&place, 0, 2, NULL, 0, &found);
	assert_true(back->rate_hz == 50 && found.rates[0] == 50 && found.rates[1] == 50);
	assert_int_equal(samples_of(back), samples);
	assert_int_equal(back->ledger.lost, 7);
	profile__free(back);
	profile->ledger.rate_hz = 100;
	works(put(store, profile, 1));
	profile->ledger.rate_hz = 50;
	works(put(store, profile, 2));
	back = read_some(&place, 0, 3, NULL, 0, &found);
	assert_true(back->rate_hz == 100 && back->ledger.rate_hz == 100);
	assert_true(found.rates[0] == 50 && found.rates[1] == 100);
	assert_int_equal(samples_of(back), 5 * samples);
	assert_int_equal(back->ledger.lost, 5 * 7);
	assert_int_equal(back->ledger.outcomes[OUTCOME_LINE_UNKNOWN], 5);
	assert_int_equal(back->ledger.outcomes[OUTCOME_TRUNCATED],
			 5 * profile->ledger.outcomes[OUTCOME_TRUNCATED]);
	assert_true(ledger__adds_up(&back->ledger));
	assert_int_equal(ledger__samples(&back->ledger), samples_of(back));
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* A window is one, whatever rates it has, and goes as one. */
static void windows_of_several_rates_are_whole(void **state)
{
	const struct store_limits limits = { UINT64_MAX, 10 * SECOND }, small = { 1, INT64_MAX };
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__machine(), rest = *profile, *back;
	struct store_found found;
	uint64_t samples = samples_of(profile);

	(void)state;
	rest.ledger.rate_hz = profile->ledger.rate_hz / 4;
	for (int i = 0; i < 40; i++) {
		works(put_rates(store, profile, i, &rest));
		works(store__retain(store, &limits, EPOCH + i * SECOND));
		back = read_some(&place, i, i + 1, NULL, 0, &found);
		assert_int_equal(found.windows, 1);
		assert_int_equal(back->duration_ns, SECOND);
		assert_int_equal(samples_of(back), 5 * samples);
		profile__free(back);
	}
	assert_in_range(count_rows(store, "windows"), 20, 26);
	for (int i = 0; i < 100; i++)
		works(store__retain(store, &small, EPOCH + 40 * SECOND));
	assert_int_equal(count_rows(store, "windows"), 2);
	back = read_all(&place);
	assert_int_equal(samples_of(back), 5 * samples);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* Of many stacks that were seen once each the sum is right, though none has a whole count. */
static void odd_rates_add_up(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__tree(1000, 1, 1), *back;
	uint64_t samples = samples_of(profile);

	(void)state;
	profile->ledger.rate_hz = 25;
	works(put(store, profile, 0));
	profile->ledger.rate_hz = 19;
	works(put(store, profile, 1));
	back = read_all(&place);
	assert_true(back->rate_hz == 25);
	assert_in_range(samples_of(back), samples + samples * 25 / 19 - 1,
			samples + samples * 25 / 19 + 1);
	for (size_t i = 0; i < back->sample_count; i++)
		assert_in_range(back->samples[i].count, 2, 3);
	assert_true(ledger__adds_up(&back->ledger));
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

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

static void readers_see_one_moment(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__machine(), *back;

	(void)state;
	works(put(store, profile, 0));
	assert_int_equal(database__run(store, "BEGIN IMMEDIATE; DELETE FROM windows;"), SQLITE_OK);
	back = read_all(&place);
	assert_int_equal(samples_of(back), 100);
	assert_int_equal(database__run(store, "ROLLBACK"), SQLITE_OK);
	profile__free(back);
	profile__free(profile);
	store__close(store);
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
		cmocka_unit_test(numbers_are_packed),
		cmocka_unit_test(sums_add_up),
		cmocka_unit_test(windows_come_back),
		cmocka_unit_test(hostile_names_come_back),
		cmocka_unit_test(everything_is_held_once),
		cmocka_unit_test(windows_are_found_by_time),
		cmocka_unit_test(services_are_found_by_labels),
		cmocka_unit_test(outcomes_are_told_by_stacks),
		cmocka_unit_test(rates_are_weighed),
		cmocka_unit_test(odd_rates_add_up),
		cmocka_unit_test(windows_of_several_rates_are_whole),
		cmocka_unit_test(old_windows_go),
		cmocka_unit_test(size_is_kept),
		cmocka_unit_test(a_size_that_is_soon_reached_is_kept),
		cmocka_unit_test(it_is_nobody_elses),
		cmocka_unit_test(a_full_disk_costs_a_window),
		cmocka_unit_test(readers_see_one_moment),
		cmocka_unit_test(what_is_no_store_is_refused),
		cmocka_unit_test(another_database_is_refused),
		cmocka_unit_test(missing_parts_are_noticed),
		cmocka_unit_test(nothing_runs_in_a_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
