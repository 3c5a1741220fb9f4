// SPDX-License-Identifier: BSD-2-Clause
/* When news is taken, with a fake sampler and a fake clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/now.h"
#include "recording/news.h"
#include "sampling/sampler.h"
#include "wrap.h"

#define NS_PER_MS 1000000LL
#define NS_PER_S  (1000 * NS_PER_MS)

enum { STACKS_FD = 5, MAPPINGS_FD, HERALDS_FD };

static struct {
	int64_t now_ns;
	size_t news; /* records that wait */
	bool urges, heralded;
	unsigned int drainings;
} made_up;

WRAP(int, clock_gettime, clockid_t clock, struct timespec *time)
{
	(void)clock;
	time->tv_sec = made_up.now_ns / NS_PER_S;
	time->tv_nsec = made_up.now_ns % NS_PER_S;
	return 0;
}

WRAP(size_t, sampler__drain, struct sampler *sampler)
{
	size_t taken = made_up.news;

	(void)sampler;
	made_up.news = 0;
	made_up.urges = false;
	made_up.drainings++;
	return taken;
}

WRAP(bool, sampler__urges, const struct sampler *sampler)
{
	(void)sampler;
	return made_up.urges;
}

WRAP(int, sampler__fd, const struct sampler *sampler)
{
	(void)sampler;
	return STACKS_FD;
}

WRAP(int, sampler__mappings_fd, const struct sampler *sampler)
{
	(void)sampler;
	return MAPPINGS_FD;
}

WRAP(int, sampler__heralds_fd, const struct sampler *sampler)
{
	(void)sampler;
	return HERALDS_FD;
}

WRAP(bool, sampler__take_heralds, struct sampler *sampler)
{
	bool heralded = made_up.heralded;

	(void)sampler;
	made_up.heralded = false;
	return heralded;
}

static int begin(void **state)
{
	static struct news news;

	memset(&news, 0, sizeof(news));
	memset(&made_up, 0, sizeof(made_up));
	made_up.now_ns = NS_PER_S;
	*state = &news;
	return 0;
}

/* The descriptor WHICH of those to poll; -1: none. */
static int waits_for(const struct news *news, size_t which)
{
	struct pollfd fds[NEWS_FDS];

	news__await(news, fds);
	return fds[which].fd;
}

/* COUNT records come, and FD becomes readable. */
static void come(struct news *news, int fd, size_t count)
{
	struct pollfd fds[NEWS_FDS];
	bool awaited = false;

	made_up.news += count;
	news__await(news, fds);
	for (size_t i = 0; i < NEWS_FDS; i++)
		if (fds[i].fd == fd) {
			fds[i].revents = POLLIN;
			awaited = true;
		}
	assert_true(awaited);
	news__note(news, fds);
}

static size_t take(struct news *news)
{
	return news__take(news, now_ns());
}

/* Takes a record just now, so that the next one is put off. */
static void put_next_off(struct news *news)
{
	come(news, STACKS_FD, 1);
	assert_int_equal(take(news), 1);
	come(news, STACKS_FD, 1);
	assert_int_equal(take(news), 0);
	assert_int_equal(waits_for(news, 0), -1);
}

static void test_first_news_is_taken_at_once(void **state)
{
	come(*state, STACKS_FD, 3);
	assert_int_equal(take(*state), 3);
	assert_int_equal(news__due(*state), 0);
	assert_int_equal(waits_for(*state, 0), STACKS_FD);
	assert_int_equal(waits_for(*state, 1), -1);
}

static void test_next_news_waits_for_the_pause(void **state)
{
	put_next_off(*state);
	made_up.now_ns += 9 * NS_PER_MS;
	assert_int_equal(take(*state), 0);
	assert_int_equal(news__due(*state), made_up.now_ns + NS_PER_MS);
	made_up.now_ns += NS_PER_MS;
	assert_int_equal(take(*state), 1);
	assert_int_equal(waits_for(*state, 0), STACKS_FD);
}

/* Otherwise each record would wake twice: when it comes, and when its pause is over. */
static void test_storm_wakes_once_per_pause(void **state)
{
	put_next_off(*state);
	for (int i = 0; i < 20; i++) {
		made_up.now_ns += 10 * NS_PER_MS;
		made_up.news = 2;
		assert_int_equal(take(*state), 2);
		assert_int_equal(waits_for(*state, 0), -1);
		assert_int_equal(news__due(*state), made_up.now_ns + 10 * NS_PER_MS);
	}
	made_up.now_ns += 10 * NS_PER_MS;
	assert_int_equal(take(*state), 0);
	assert_int_equal(news__due(*state), 0);
	assert_int_equal(waits_for(*state, 0), STACKS_FD);
}

static void test_mappings_wake_nothing_without_a_herald(void **state)
{
	put_next_off(*state);
	assert_int_equal(waits_for(*state, 1), HERALDS_FD);
}

static void test_heralded_mapping_is_taken_in_the_pause(void **state)
{
	struct news *news = *state;

	put_next_off(news);
	made_up.heralded = true;
	come(news, HERALDS_FD, 0);
	assert_int_equal(waits_for(news, 1), MAPPINGS_FD);
	/* Whether mappings can wait is checked half a millisecond after the first of them. */
	come(news, MAPPINGS_FD, 1);
	assert_int_equal(waits_for(news, 1), -1);
	assert_int_equal(news__due(news), made_up.now_ns + NS_PER_MS / 2);
	made_up.now_ns += NS_PER_MS / 2;
	assert_int_equal(take(news), 0);
	come(news, MAPPINGS_FD, 1);
	made_up.now_ns += NS_PER_MS / 2;
	made_up.urges = true;
	assert_int_equal(take(news), 3);
	assert_int_equal(made_up.drainings, 2);
}

static void test_loading_ends_after_a_while(void **state)
{
	struct news *news = *state;

	put_next_off(news);
	made_up.heralded = true;
	come(news, HERALDS_FD, 0);
	made_up.now_ns += 50 * NS_PER_MS;
	assert_int_equal(waits_for(news, 1), HERALDS_FD);
}

/* A second program begins while the first one is loading. */
static void test_a_new_herald_prolongs_loading(void **state)
{
	struct news *news = *state;

	put_next_off(news);
	made_up.heralded = true;
	come(news, HERALDS_FD, 0);
	made_up.now_ns += 40 * NS_PER_MS;
	made_up.heralded = true;
	come(news, MAPPINGS_FD, 0);
	made_up.now_ns += 40 * NS_PER_MS;
	assert_int_equal(take(news), 1);
	come(news, STACKS_FD, 1);
	assert_int_equal(waits_for(news, 1), MAPPINGS_FD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_first_news_is_taken_at_once, begin),
		cmocka_unit_test_setup(test_next_news_waits_for_the_pause, begin),
		cmocka_unit_test_setup(test_storm_wakes_once_per_pause, begin),
		cmocka_unit_test_setup(test_mappings_wake_nothing_without_a_herald, begin),
		cmocka_unit_test_setup(test_heralded_mapping_is_taken_in_the_pause, begin),
		cmocka_unit_test_setup(test_loading_ends_after_a_while, begin),
		cmocka_unit_test_setup(test_a_new_herald_prolongs_loading, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
