// SPDX-License-Identifier: BSD-2-Clause
/* Makes a store like an agent's after a day on a busy machine, for tests of queries: windows of
 * 10 s, each with some samples of every service, all in different stacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/database.h"
#include "store/packing.h"
#include "synthetic.h"

#define NS_PER_S  1000000000LL
#define WINDOW_NS (10 * NS_PER_S)

#define STACKS	300 /* of a service */
#define DEPTH	30
#define SAMPLES 15 /* of a service in a window */

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 33) % below;
}

static uint32_t add_location(struct profile *profile, uint32_t service, uint32_t number)
{
	char name[64], file[64];

	snprintf(name, sizeof(name), "Handler%u.method_%u", number / 7, number);
	snprintf(file, sizeof(file), "service_%u/module_%u.py", service, number / 20);
	return synthetic__location(profile, name, "/usr/lib/", file, number, number + 3);
}

/* Each stack of each service, once. */
static struct profile *make_profile(uint32_t services, json_t **labels)
{
	struct profile *profile = synthetic__new();

	for (uint32_t service = 0; service < services; service++) {
		char command[64];
		uint32_t thread;

		snprintf(command, sizeof(command), "service_%u.py", service);
		thread = synthetic__thread(profile, 1 + service, command, 1 + service, "");
		labels[service] = json_pack("{s:s, s:s}", "service_name", command, "python_version",
					    "3.11.2");
		for (uint32_t stack = 0; stack < STACKS; stack++) {
			uint32_t locations[DEPTH];

			/* Stacks share many callers, and few callees. */
			for (uint32_t i = 0; i < DEPTH; i++)
				locations[i] =
					add_location(profile, service,
						     (DEPTH - i) * 40 + stack % (2 + DEPTH - i));
			locations[0] = add_location(profile, service, 2000 + stack);
			synthetic__add(profile, OUTCOME_PYTHON, thread, locations, DEPTH, 1);
		}
	}
	return profile;
}

static void check(int code, struct store *store)
{
	if (code == SQLITE_OK || code == SQLITE_DONE)
		return;
	fprintf(stderr, "%s\n", database__explain(store));
	exit(1);
}

/* Adds random stacks of the service, from FIRST on, with one sample each. */
static void add_service(struct store *store, int64_t window, int64_t label_set, int64_t first)
{
	struct packed packed = { 0 };
	int64_t before = 0, stack = first;

	for (int i = 0; i < SAMPLES; i++) {
		packed__add(&packed, stack - before);
		packed__add(&packed, 1);
		before = stack;
		stack += 1 + draw(STACKS / SAMPLES);
	}
	sqlite3_bind_int64(store->put_service, 1, window);
	sqlite3_bind_int64(store->put_service, 2, label_set);
	sqlite3_bind_blob(store->put_service, 3, packed.bytes, packed.length, SQLITE_STATIC);
	check(sqlite3_step(store->put_service), store);
	sqlite3_reset(store->put_service);
	free(packed.bytes);
}

/* Like store__put(), but faster: that looks at each stack. */
static void add_window(struct store *store, uint32_t services, int64_t end_ns)
{
	char *outcomes = xasprintf("{\"python\":%u}", services * SAMPLES);
	int64_t window;

	sqlite3_bind_int64(store->put_window, 1, end_ns - WINDOW_NS);
	sqlite3_bind_int64(store->put_window, 2, end_ns);
	sqlite3_bind_double(store->put_window, 3, 19);
	sqlite3_bind_int64(store->put_window, 4, services * SAMPLES);
	sqlite3_bind_int64(store->put_window, 5, services * SAMPLES);
	sqlite3_bind_int64(store->put_window, 6, 0);
	sqlite3_bind_text(store->put_window, 7, outcomes, -1, SQLITE_STATIC);
	check(sqlite3_step(store->put_window), store);
	sqlite3_reset(store->put_window);
	window = sqlite3_last_insert_rowid(store->database);
	for (uint32_t service = 0; service < services; service++)
		add_service(store, window, 1 + service, 1 + (int64_t)service * STACKS);
	free(outcomes);
}

int main(int argc, char **argv)
{
	uint32_t services, windows;
	struct labelled_window first = { 0 };
	struct profile *profile;
	struct store *store;
	json_t **labels;
	int64_t end_ns;

	if (argc != 5) {
		fputs("usage: synthetic_day FOLDER SERVICES WINDOWS END\n", stderr);
		return 2;
	}
	services = strtoul(argv[2], NULL, 10);
	windows = strtoul(argv[3], NULL, 10);
	end_ns = strtoll(argv[4], NULL, 10) * NS_PER_S;
	labels = xcalloc(services, sizeof(*labels));
	profile = make_profile(services, labels);
	profile->ledgers[0].rate_hz = 19;
	first = (struct labelled_window){
		.start_unix_ns = end_ns - windows * WINDOW_NS,
		.end_unix_ns = end_ns - (windows - 1) * WINDOW_NS,
		.profile = profile,
		.ledgers = profile->ledgers,
		.labels = labels,
	};
	if (store__open(argv[1], STORE_WRITE, &store) || store__put(store, &first))
		return 1;
	check(database__run(store, "BEGIN"), store);
	for (uint32_t left = windows - 1; left--;)
		add_window(store, services, end_ns - left * WINDOW_NS);
	check(database__run(store, "COMMIT"), store);
	store__close(store);
	for (uint32_t service = 0; service < services; service++)
		json_decref(labels[service]);
	free(labels);
	profile__free(profile);
	return 0;
}
