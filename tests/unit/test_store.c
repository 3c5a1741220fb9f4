// SPDX-License-Identifier: BSD-2-Clause
/* What a store holds, and what queries return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sums.h"
#include "store/packing.h"
#include "stores.h"

static const struct output_options plain = { .by_process = true, .title = "test" };

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
		sums__add(&sums, 1 + i % 1000 * 1000003, 1, i);
	for (size_t i = 0; i < sums.capacity; i++) {
		keys += !!sums.slots[i].key;
		all += sums.slots[i].value;
	}
	assert_int_equal(sums.count, 1000);
	assert_int_equal(keys, 1000);
	assert_int_equal(all, 30000ULL * 29999 / 2);
	free(sums.slots);
}

/* A query returns what was put: each stack with its service and its count, and the ledger. */
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
	assert_int_equal(back->ledgers[0].events, 200);
	assert_memory_equal(&back->ledgers[0].outcomes[OUTCOME_NO_PYTHON], &(uint64_t){ 20 }, 8);
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

static void machine_code_comes_back(void **state)
{
	struct profile *profile = synthetic__mixed(), *back;
	const struct profile_mapping *mapping;
	const struct profile_location *leaf;
	struct place place = make_place();
	struct store *store = open_store(&place);

	(void)state;
	works(put(store, profile, 0));
	works(put(store, profile, 1));
	assert_int_equal(count_rows(store, "mappings"), 1);
	back = read_all(&place);
	assert_int_equal(samples_of(back), 24);
	assert_int_equal(back->stack_count, 2);
	assert_int_equal(back->mapping_count, 2);
	mapping = &back->mappings[1];
	assert_int_equal(mapping->start, 0x2000);
	assert_int_equal(mapping->limit, 0x9000);
	assert_int_equal(mapping->offset, 0x1000);
	assert_string_equal(back->strings[mapping->file], "/usr/lib/libm.so.6");
	assert_string_equal(back->strings[mapping->build_id], SYNTHETIC_BUILD_ID);
	for (size_t i = 0; i < back->stack_count; i++) {
		leaf = &back->locations[back->stacks[i].locations[0]];
		if (back->stacks[i].depth == 2) {
			assert_int_equal(leaf->mapping, 1);
			assert_int_equal(leaf->address, 0x2345);
			assert_int_equal(back->functions[leaf->function].kind, FRAME_NATIVE);
		} else {
			assert_int_equal(leaf->mapping, 0);
			assert_true(leaf->address == SYNTHETIC_ADDRESS);
			assert_int_equal(back->functions[leaf->function].kind, FRAME_KERNEL);
		}
	}
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

static void interpreter_code_comes_back(void **state)
{
	struct profile *profile = synthetic__native(), *back;
	struct place place = make_place();
	struct store *store = open_store(&place);
	size_t found = 0;

	(void)state;
	works(put(store, profile, 0));
	works(put(store, profile, 1));
	assert_int_equal(count_rows(store, "functions"), profile->function_count);
	back = read_all(&place);
	for (size_t i = 0; i < back->function_count; i++) {
		const struct profile_function *function = &back->functions[i];

		found += function->of_interpreter;
		assert_int_equal(function->of_interpreter,
				 strstr(back->strings[function->name], "libpython") != NULL);
	}
	assert_int_equal(found, 2);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* A newer version may have put windows of other events. */
static void unknown_events_are_skipped(void **state)
{
	struct profile *profile = synthetic__machine(), *back;
	struct place place = make_place();
	struct store *store = open_store(&place);

	(void)state;
	works(put(store, profile, 0));
	works(put(store, profile, 1));
	assert_int_equal(database__run(store, "UPDATE windows SET event = 'faults' WHERE id = 2"),
			 SQLITE_OK);
	back = read_all(&place);
	assert_int_equal(samples_of(back), samples_of(profile));
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* Which files share a name is known only after all windows are read. */
static void files_of_several_windows_are_told_apart(void **state)
{
	struct profile *orders = synthetic__utils("/srv/orders/"),
		       *billing = synthetic__utils("/srv/billing/"), *back;
	struct place place = make_place();
	struct store *store = open_store(&place);
	char *text;
	size_t size;

	(void)state;
	works(put(store, orders, 0));
	works(put(store, billing, 1));
	back = read_all(&place);
	text = synthetic__write(&output_folded, back, &plain, &size);
	assert_string_equal(text, "service \"\";normalise (billing/utils.py:2) 10\n"
				  "service \"\";normalise (orders/utils.py:2) 10\n");
	free(text);
	profile__free(back);
	profile__free(billing);
	profile__free(orders);
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

static void equal_rows_are_stored_once(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__plain();
	int64_t before[STORE_TABLES];

	(void)state;
	works(put(store, profile, 0));
	for (int i = 0; i < STORE_TABLES; i++)
		before[i] = count_rows(store, store_tables[i]);
	assert_int_equal(before[TABLE_STACKS], 5);
	for (int i = 1; i < 40; i++)
		works(put(store, profile, i));
	for (int i = 0; i < STORE_TABLES; i++)
		assert_int_equal(count_rows(store, store_tables[i]), before[i]);
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
	assert_int_equal(back->ledgers[0].events, 0);
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
	assert_int_equal(back->ledgers[0].events, 60);
	assert_true(ledger__adds_up(back->ledgers));
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

/* A filtered ledger takes the outcome of each sample from its stack. */
static void outcomes_follow_from_stacks(void **state)
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
		assert_int_equal(back->ledgers[0].outcomes[i], profile->ledgers[0].outcomes[i]);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* The samples of each event come back as one sum, also from windows with different periods. */
static void events_come_back(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__events(), *back = profile__new();
	const struct store_query query = { EPOCH, EPOCH + 10 * SECOND, NULL, 0 };
	uint64_t clock = ledger__samples(&profile->ledgers[0]);
	uint64_t faults = ledger__samples(&profile->ledgers[1]), values[2] = { 0 };
	struct store_found found;
	struct event *events;
	size_t count;

	(void)state;
	works(put(store, profile, 0));
	profile->events[1].period = 4;
	works(put(store, profile, 1));
	works(store__events(store, &query, &events, &count));
	assert_int_equal(count, 2);
	assert_string_equal(events[0].name, "cpu-clock");
	assert_string_equal(events[1].name, "page-faults");
	assert_int_equal(events[1].period, 4);
	events__name(events, count, back);
	works(store__read(store, &query, back, &found));
	assert_int_equal(found.windows, 2);
	assert_int_equal(found.lost, 2 * 3);
	assert_int_equal(ledger__samples(&back->ledgers[0]), 2 * clock);
	assert_int_equal(ledger__samples(&back->ledgers[1]), 2 * faults);
	assert_int_equal(back->ledgers[1].events, 2 * (faults + 3));
	assert_true(back->ledgers[0].rate_hz == 100 && back->ledgers[1].rate_hz == 0);
	for (size_t i = 0; i < back->sample_count; i++)
		values[back->samples[i].event] += back->samples[i].amount.value;
	assert_int_equal(values[1], 2 * 5 * faults);
	assert_int_equal(values[0], 2 * clock * ledger__period_ns(100));
	profile__free(back);
	/* A profile that names only the clock gets only its samples. */
	back = read_some(&place, 0, 10, NULL, 0, &found);
	assert_int_equal(samples_of(back), 2 * clock);
	assert_int_equal(found.lost, 0);
	/* Data that several rows of a window use stays in use until the last one. */
	for (int table = 0; table < STORE_TABLES; table++) {
		char *sql = xasprintf("SELECT count(*) FROM %s WHERE until <"
				      " (SELECT max(id) FROM windows)",
				      store_tables[table]);
		int64_t unused;

		assert_int_equal(database__number(store, sql, 0, &unused), SQLITE_OK);
		assert_int_equal(unused, 0);
		free(sql);
	}
	free(events);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

static void an_event_of_a_newer_version_is_refused(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__plain();
	const struct store_query query = { EPOCH, EPOCH + 10 * SECOND, NULL, 0 };
	struct event *events;
	size_t count;

	(void)state;
	works(put(store, profile, 0));
	assert_int_equal(database__run(store, "UPDATE windows SET event = 'moons:1'"), 0);
	fails_with(store__events(store, &query, &events, &count), "does not know");
	free(events);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* Puts PROFILE as old versions did: the value of a sample follows from its window's rate. */
static void put_at(struct store *store, struct profile *profile, int number, double rate_hz)
{
	profile->ledgers[0].rate_hz = rate_hz;
	works(put(store, profile, number));
	assert_int_equal(database__run(store, "UPDATE services SET sample_values = NULL"), 0);
}

/* A sample at half the rate stands for twice the time, in any order of the windows. */
static void rates_add_up(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__plain(), *back;
	struct store_found found;
	uint64_t samples = samples_of(profile);

	(void)state;
	profile->ledgers[0].lost = 7;
	profile->ledgers[0].events += 7;
	profile->ledgers[0].outcomes[OUTCOME_PYTHON]--;
	profile->ledgers[0].outcomes[OUTCOME_LINE_UNKNOWN]++;
	put_at(store, profile, 0, 50);
	back = read_some(&place, 0, 2, NULL, 0, &found);
	assert_true(back->rate_hz == 50 && found.rates[0] == 50 && found.rates[1] == 50);
	assert_int_equal(synthetic__weight(back), samples);
	assert_int_equal(back->ledgers[0].lost, 7);
	profile__free(back);
	put_at(store, profile, 1, 100);
	put_at(store, profile, 2, 50);
	back = read_some(&place, 0, 3, NULL, 0, &found);
	assert_true(back->rate_hz == 100 && back->ledgers[0].rate_hz == 100);
	assert_true(found.rates[0] == 50 && found.rates[1] == 100);
	assert_int_equal(synthetic__weight(back), 5 * samples);
	assert_int_equal(samples_of(back), 3 * samples);
	assert_int_equal(back->ledgers[0].lost, 3 * 7);
	assert_int_equal(back->ledgers[0].outcomes[OUTCOME_LINE_UNKNOWN], 3);
	assert_true(ledger__adds_up(back->ledgers));
	assert_int_equal(ledger__samples(back->ledgers), samples_of(back));
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* The values of samples are stored if they do not follow from the window's rate. */
static void values_come_back(void **state)
{
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__machine(), *back;
	struct store_found found;
	uint64_t value = 0, back_value = 0;

	(void)state;
	for (size_t i = 0; i < profile->sample_count; i++) {
		profile->samples[i].amount.value <<= i % 3;
		value += profile->samples[i].amount.value;
	}
	works(put(store, profile, 0));
	back = read_some(&place, 0, 1, NULL, 0, &found);
	assert_true(found.rates[0] == 25 && found.rates[1] == 100);
	for (size_t i = 0; i < back->sample_count; i++)
		back_value += back->samples[i].amount.value;
	assert_int_equal(back_value, value);
	assert_int_equal(samples_of(back), samples_of(profile));
	assert_int_equal(synthetic__weight(back), synthetic__weight(profile));
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

/* A window may have several rows, which are removed together. */
static void windows_of_several_rows_are_whole(void **state)
{
	const struct store_limits limits = { UINT64_MAX, 10 * SECOND }, small = { 1, INT64_MAX };
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *profile = synthetic__machine(), *back;
	struct store_found found;
	uint64_t samples = samples_of(profile);

	(void)state;
	for (int i = 0; i < 40; i++) {
		put_at(store, profile, i, 100);
		put_at(store, profile, i, 25);
		works(store__retain(store, &limits, EPOCH + i * SECOND));
		back = read_some(&place, i, i + 1, NULL, 0, &found);
		assert_int_equal(found.windows, 1);
		assert_int_equal(back->duration_ns, SECOND);
		assert_int_equal(synthetic__weight(back), 5 * samples);
		profile__free(back);
	}
	assert_in_range(count_rows(store, "windows"), 20, 26);
	for (int i = 0; i < 100; i++)
		works(store__retain(store, &small, EPOCH + 40 * SECOND));
	assert_int_equal(count_rows(store, "windows"), 2);
	back = read_all(&place);
	assert_int_equal(synthetic__weight(back), 5 * samples);
	profile__free(back);
	profile__free(profile);
	store__close(store);
	remove_place(&place);
}

static void a_reader_does_not_see_an_open_transaction(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_packed),
		cmocka_unit_test(sums_add_up),
		cmocka_unit_test(windows_come_back),
		cmocka_unit_test(machine_code_comes_back),
		cmocka_unit_test(interpreter_code_comes_back),
		cmocka_unit_test(unknown_events_are_skipped),
		cmocka_unit_test(files_of_several_windows_are_told_apart),
		cmocka_unit_test(hostile_names_come_back),
		cmocka_unit_test(equal_rows_are_stored_once),
		cmocka_unit_test(windows_are_found_by_time),
		cmocka_unit_test(services_are_found_by_labels),
		cmocka_unit_test(outcomes_follow_from_stacks),
		cmocka_unit_test(events_come_back),
		cmocka_unit_test(an_event_of_a_newer_version_is_refused),
		cmocka_unit_test(rates_add_up),
		cmocka_unit_test(values_come_back),
		cmocka_unit_test(windows_of_several_rows_are_whole),
		cmocka_unit_test(a_reader_does_not_see_an_open_transaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
