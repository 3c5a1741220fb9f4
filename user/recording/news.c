// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be woken costs more than most news are worth, so they are put off until there are some, or
 * something else is due.  What cannot wait is a Python that is being loaded, for its samples count
 * as unknown till it is found.  Where the kernel side finds it itself, all is well; else it is told
 * here what is mapped.  But every program maps files, and few of them are Pythons: so only while
 * one is loaded that has had a Python in a library before does that wake, which its beginning
 * heralds.
 */
#include <stdbool.h>

#include "base/now.h"
#include "recording/news.h"
#include "sampling/sampler.h"

#define NS_PER_MS 1000000LL

/* New stacks are defined at once after a quiet time, then at most so often: the first of a process
 * that will soon end are named in time, and a storm of them costs little.  What waits for nobody is
 * taken whenever something else is due. */
#define PAUSE_NS (10 * NS_PER_MS)

/* So many in one pause are a storm. */
#define STORM_MIN 2

/* How long after its beginning a program may still be loaded. */
#define LOADING_NS (50 * NS_PER_MS)

/* How long after it has mapped something it is looked whether what came since can wait: it maps
 * many files, one right after another. */
#define URGENT_NS (NS_PER_MS / 2)

int64_t news__due(const struct news *news)
{
	return news->urgent_ns && news->urgent_ns < news->put_off_ns ? news->urgent_ns
								     : news->put_off_ns;
}

static bool is_loading(const struct news *news)
{
	return now_ns() < news->loading_ns;
}

/* What is readable when some may not be put off any more; -1: nothing. */
static int urgent_fd(const struct news *news)
{
	if (!news->put_off_ns || news->urgent_ns)
		return -1;
	return is_loading(news) ? sampler__mappings_fd(news->sampler)
				: sampler__heralds_fd(news->sampler);
}

void news__await(const struct news *news, struct pollfd fds[NEWS_FDS])
{
	int fd = news->put_off_ns ? -1 : sampler__fd(news->sampler);

	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = urgent_fd(news), .events = POLLIN };
}

/* What has just come waits for its turn where other news came just now. */
static void put_off(struct news *news)
{
	int64_t turn_ns = news->taken_ns + PAUSE_NS;

	if (now_ns() < turn_ns && !sampler__urges(news->sampler))
		news->put_off_ns = turn_ns;
}

/* A program begins that is to be heeded, or one that is has mapped something. */
static void note_loading(struct news *news)
{
	bool was_loading = is_loading(news);
	int64_t now = now_ns();

	if (sampler__take_heralds(news->sampler))
		news->loading_ns = now + LOADING_NS;
	if (was_loading)
		news->urgent_ns = now + URGENT_NS;
}

void news__note(struct news *news, const struct pollfd fds[NEWS_FDS])
{
	if (fds[0].revents)
		put_off(news);
	if (fds[1].revents)
		note_loading(news);
}

size_t news__take(struct news *news, int64_t now)
{
	bool were_put_off = news->put_off_ns;
	size_t taken;

	if (now >= news->urgent_ns)
		news->urgent_ns = 0;
	if (now < news->put_off_ns && !sampler__urges(news->sampler))
		return 0;
	taken = sampler__drain(news->sampler);
	/* A storm of them comes one draining after another. */
	news->put_off_ns = were_put_off && taken >= STORM_MIN ? now + PAUSE_NS : 0;
	if (taken)
		news->taken_ns = now;
	return taken;
}
