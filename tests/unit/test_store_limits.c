// SPDX-License-Identifier: BSD-2-Clause
/* The limits of a store: age, size and disk space.  The clock advances by a second with each
 * reading, so that no window is removed only because there was time for it. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/log.h"
#include "stores.h"
#include "wrap.h"

WRAP(int, clock_gettime, clockid_t clock, struct timespec *time)
{
	static time_t seconds;

	(void)clock;
	*time = (struct timespec){ .tv_sec = ++seconds };
	return 0;
}

static void old_windows_are_removed(void **state)
{
	const struct store_limits limits = { UINT64_MAX, 100 * SECOND };
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct profile *first = synthetic__plain(), *later = synthetic__machine();

	(void)state;
	works(put(store, first, 0));
	for (int i = 1; i < 150; i++) {
		works(put(store, later, i));
		works(store__retain(store, &limits, EPOCH + i * SECOND));
	}
	assert_in_range(count_rows(store, "windows"), 100, 102);
	assert_int_equal(count_rows(store, "services"), 3 * count_rows(store, "windows"));
	/* Rows that only the first window used are gone. */
	assert_int_equal(count_rows(store, "stacks"), 3);
	assert_int_equal(count_rows(store, "label_sets"), 3);
	profile__free(first);
	profile__free(later);
	store__close(store);
	remove_place(&place);
}

/* A profile of COUNT stacks.  Profiles of different NUMBERs have little in common. */
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

/* Puts COUNT windows from FIRST on, each with STACKS stacks.  EACH of them in a row have the same
 * stacks.  Returns the largest size in use. */
static uint64_t put_trees(struct store *store, const struct store_limits *limits, uint32_t first,
			  uint32_t count, uint32_t stacks, uint32_t each)
{
	uint64_t largest = 0;

	for (uint32_t i = first; i < first + count; i++) {
		struct profile *profile = other_tree(i / each, stacks);

		works(put(store, profile, i));
		works(store__retain(store, limits, EPOCH + i * SECOND));
		profile__free(profile);
		if (store__bytes(store) > largest)
			largest = store__bytes(store);
	}
	return largest;
}

static void the_size_limit_is_kept(void **state)
{
	const struct store_limits limits = { 1 << 19, INT64_MAX };
	struct place place = make_place();
	struct store *store = open_store(&place);
	uint64_t largest = 0, file = 0;
	struct stat status;

	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
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
	assert_in_range(largest, 1 << 18, (1 << 19) + (1 << 17));
	assert_in_range(file, 0, (1 << 19) + (1 << 17));
	assert_in_range(count_rows(store, "windows"), 5, 75);
	store__close(store);
	remove_place(&place);
}

/* Each window adds more than a call removes otherwise. */
static void large_windows_do_not_exceed_the_size_limit(void **state)
{
	const struct store_limits limits = { 1 << 19, INT64_MAX };
	struct place place = make_place();
	struct store *store = open_store(&place);

	(void)state;
	assert_in_range(put_trees(store, &limits, 0, 7, 1000, 1), 1 << 18, 7 << 17);
	store__close(store);
	remove_place(&place);
}

/* Many small windows must be removed for each large one. */
static void large_windows_follow_small_ones(void **state)
{
	const struct store_limits limits = { 1 << 19, INT64_MAX };

	for (uint32_t each = 1; each <= 3; each += 2) {
		struct place place = make_place();
		struct store *store = open_store(&place);

		(void)state;
		put_trees(store, &limits, 0, 200, 1, each);
		assert_in_range(put_trees(store, &limits, 200, 24, 480, each), 3 << 17, 6 << 17);
		assert_in_range(store__bytes(store), 0, (4 << 17) + (1 << 16));
		assert_in_range(count_rows(store, "windows"), 2, 100);
		store__close(store);
		remove_place(&place);
	}
}

/* The size falls to the new limit soon, and not far below it. */
static void a_lowered_limit_is_reached(void **state)
{
	const struct store_limits high = { UINT64_MAX, INT64_MAX }, low = { 1 << 18, INT64_MAX };
	struct place place = make_place();
	struct store *store = open_store(&place);
	struct stat status;
	int steps = 0;

	(void)state;
	put_trees(store, &high, 0, 500, 10, 1);
	assert_true(store__bytes(store) > 3 << 18);
	/* Putting a window also merges the log into the file. */
	do {
		put_trees(store, &low, 500 + steps, 1, 10, 1);
		assert_int_equal(stat(place.path, &status), 0);
	} while ((store__bytes(store) > 1 << 18 || status.st_size > 3 << 17) && ++steps < 300);
	assert_in_range(steps, 0, 299);
	assert_in_range(store__bytes(store), 3 << 16, 1 << 18);
	store__close(store);
	remove_place(&place);
}

/* Only the window for which there was no room is missing. */
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
	fails_with(put(store, large, 1), "no space left");
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

/* Mounts a disk of SIZE at PLACE, for this process alone.  False if it may not mount. */
static bool mount_disk(const struct place *place, const char *size)
{
	char *options = xasprintf("size=%s", size);
	bool mounted = !unshare(CLONE_NEWNS) &&
		       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		       !mount("none", place->folder, "tmpfs", 0, options);

	free(options);
	return mounted;
}

static void unmount_disk(const struct place *place)
{
	assert_int_equal(umount2(place->folder, MNT_DETACH), 0);
	remove_place(place);
}

/* A disk that is smaller than the limit acts as a lower limit: only the oldest windows are lost.  A
 * limit that is set after that is kept, too. */
static void a_full_disk_acts_as_a_limit(void **state)
{
	const struct store_limits high = { UINT64_MAX, INT64_MAX }, low = { 1 << 20, INT64_MAX };
	struct place place = make_place();
	struct store_found found;
	struct store *store;
	struct stat status;

	(void)state;
	if (!mount_disk(&place, "3m"))
		skip();
	store = open_store(&place);
	assert_in_range(put_trees(store, &high, 0, 120, 50, 1), 1 << 19, 3 << 20);
	assert_in_range(count_rows(store, "windows"), 20, 110);
	profile__free(read_some(&place, 110, 120, NULL, 0, &found));
	assert_int_equal(found.windows, 10);
	store__close(store);
	store = open_store(&place);
	put_trees(store, &low, 120, 60, 50, 1);
	assert_in_range(store__bytes(store), 1 << 19, 1 << 20);
	assert_int_equal(stat(place.path, &status), 0);
	assert_in_range(status.st_size, 0, 3 << 19);
	store__close(store);
	unmount_disk(&place);
}

/* Fills the rest of the disk at PLACE. */
static void fill_disk(const struct place *place)
{
	char *path = xasprintf("%s/others", place->folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char bytes[4096];

	assert_true(fd >= 0);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	close(fd);
	free(path);
}

static void windows_are_kept_when_other_files_fill_the_disk(void **state)
{
	const struct store_limits limits = { UINT64_MAX, INT64_MAX };
	struct place place = make_place();
	struct store *store;

	(void)state;
	if (!mount_disk(&place, "4m"))
		skip();
	store = open_store(&place);
	put_trees(store, &limits, 0, 50, 50, 1);
	assert_int_equal(count_rows(store, "windows"), 50);
	fill_disk(&place);
	put_trees(store, &limits, 50, 100, 50, 1);
	assert_in_range(count_rows(store, "windows"), 20, 120);
	store__close(store);
	unmount_disk(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(old_windows_are_removed),
		cmocka_unit_test(the_size_limit_is_kept),
		cmocka_unit_test(large_windows_do_not_exceed_the_size_limit),
		cmocka_unit_test(large_windows_follow_small_ones),
		cmocka_unit_test(a_lowered_limit_is_reached),
		cmocka_unit_test(a_full_disk_costs_a_window),
		cmocka_unit_test(a_full_disk_acts_as_a_limit),
		cmocka_unit_test(windows_are_kept_when_other_files_fill_the_disk),
	};

	log__set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
