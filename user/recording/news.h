/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides when BPF's news is read: new stacks, and what happened to processes and their
 * mappings. */
#ifndef PYBPFPROF_NEWS_H
#define PYBPFPROF_NEWS_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct sampler;

/* The descriptors to poll: for any news, and for what may make waiting news urgent. */
#define NEWS_FDS 2

struct news {
	struct sampler *sampler;
	int64_t put_off_ns; /* until then news waits and wakes nothing; 0: it does not wait */
	int64_t taken_ns;   /* when news was last read */
	int64_t urgent_ns;  /* when to check if mappings can wait; 0: when the next one comes */
	int64_t loading_ns; /* until then a program may be loading that had a Python before */
};

/* The next time at which news must be read, by now_ns(); 0: when some comes. */
int64_t news__due(const struct news *news);

/* news__await fills FDS for poll(2); news__note takes the result. */
void news__await(const struct news *news, struct pollfd fds[NEWS_FDS]);
void news__note(struct news *news, const struct pollfd fds[NEWS_FDS]);

/* Reads the news, unless it can wait; NOW is now_ns().  Returns the number of records. */
size_t news__take(struct news *news, int64_t now);

#endif
