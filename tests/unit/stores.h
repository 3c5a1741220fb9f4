/* SPDX-License-Identifier: BSD-2-Clause */
/* A store in a folder of its own.  Puts profiles into it, and reads them back. */
#ifndef PYBPFPROF_TESTS_STORES_H
#define PYBPFPROF_TESTS_STORES_H

#include <unistd.h>

#include "store/database.h"
#include "synthetic.h"

#define SECOND 1000000000LL

/* When the first window begins. */
#define EPOCH 1700000000000000000LL

struct place {
	char folder[32], path[64];
};

static inline struct place make_place(void)
{
	struct place place = { "/tmp/test_store.XXXXXX", "" };

	assert_non_null(mkdtemp(place.folder));
	snprintf(place.path, sizeof(place.path), "%s/profiles.db", place.folder);
	return place;
}

static inline void remove_place(const struct place *place)
{
	char *command = xasprintf("rm -rf %s", place->folder);

	assert_int_equal(system(command), 0);
	free(command);
}

static inline void fails_with(char *wrong, const char *text)
{
	assert_non_null(wrong);
	if (!strstr(wrong, text))
		fail_msg("%s", wrong);
	free(wrong);
}

static inline void works(char *wrong)
{
	if (wrong)
		fail_msg("%s", wrong);
}

static inline struct store *open_store(const struct place *place)
{
	struct store *store;

	works(store__open(place->folder, STORE_WRITE, &store));
	/* No power failure is expected during a test. */
	assert_int_equal(database__run(store, "PRAGMA synchronous = OFF"), SQLITE_OK);
	return store;
}

/* The labels of each process: the service has its short name. */
static inline json_t **make_labels(const struct profile *profile)
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

/* Puts PROFILE as the window of second NUMBER. */
static inline char *put(struct store *store, const struct profile *profile, int number)
{
	json_t **labels = make_labels(profile);
	const struct labelled_window window = {
		.start_unix_ns = EPOCH + number * SECOND,
		.end_unix_ns = EPOCH + (number + 1) * SECOND,
		.profile = profile,
		.ledgers = profile->ledgers,
		.labels = labels,
	};
	char *wrong = store__put(store, &window);

	for (size_t i = 0; i < profile->process_count; i++)
		json_decref(labels[i]);
	free(labels);
	return wrong;
}

/* The sum of the windows of the seconds from FIRST up to BEYOND. */
static inline struct profile *read_some(const struct place *place, int first, int beyond,
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

static inline struct profile *read_all(const struct place *place)
{
	struct store_found found;

	return read_some(place, 0, 1000000, NULL, 0, &found);
}

static inline int64_t count_rows(struct store *store, const char *table)
{
	char *sql = xasprintf("SELECT count(*) FROM %s", table);
	int64_t count;

	assert_int_equal(database__number(store, sql, 0, &count), SQLITE_OK);
	free(sql);
	return count;
}

static inline uint64_t samples_of(const struct profile *profile)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < profile->sample_count; i++)
		samples += profile->samples[i].amount.count;
	return samples;
}

#endif
