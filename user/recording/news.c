// SPDX-License-Identifier: BSD-2-Clause
/*
 * A wakeup costs more than most news is worth.  So news waits until there is more of it, or until
 * something else is due.  What cannot wait is a Python that is being loaded: its samples count as
 * unknown until it is found.
 *
 * If BPF sees mappings, it finds the Python itself.  Otherwise perf reports the mappings to user
 * space.  But every program maps files, and few of them are Pythons.  So mappings wake user space
 * only while a program is loading that had a Python in a library before.  BPF sends a herald when
 * such a program begins.
 */
#include <stdbool.h>

#include "base/now.h"
#include "recording/news.h"
#include "sampling/sampler.h"

#define NS_PER_MS 1000000LL

/* After a quiet time new stacks are defined at once, then at most this often.  So the first stacks
 * of a short process are named in time, and a storm of new stacks costs little.  Records that wake
 * nothing are read whenever something else is due. */
#define PAUSE_NS (10 * NS_PER_MS)

/* This many records in one pause are a storm. */
#define STORM_MIN 2

/* How long after its start a program may still be loading. */
#define LOADING_NS (50 * NS_PER_MS)

/* How long after a mapping to check whether the mappings since then can wait: a program maps many
 * files, one right after another. */
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

/* The descriptor that becomes readable when news may be urgent; -1: none. */
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

/* News waits for its turn if other news came just before it. */
static void put_off(struct news *news)
{
	int64_t turn_ns = news->taken_ns + PAUSE_NS;

	if (now_ns() < turn_ns && !sampler__urges(news->sampler))
		news->put_off_ns = turn_ns;
}

/* A program that may load a Python begins, or one has mapped something. */
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
	/* In a storm, each reading is followed by another pause. */
	news->put_off_ns = were_put_off && taken >= STORM_MIN ? now + PAUSE_NS : 0;
	if (taken)
		news->taken_ns = now;
	return taken;
}
