/* SPDX-License-Identifier: BSD-2-Clause */
/* When what the kernel side tells is taken: new stacks, what became of processes, what they map. */
#ifndef PYBPFPROF_NEWS_H
#define PYBPFPROF_NEWS_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct sampler;

/* What is to be waited for: any news, and what may make some urgent that were put off. */
#define NEWS_FDS 2

struct news {
	struct sampler *sampler;
	int64_t put_off_ns; /* till when some wait that wake nobody; 0: such may come */
	int64_t taken_ns;   /* when some were taken last */
	int64_t urgent_ns;  /* when it is looked whether these can wait; 0: as soon as some come */
	int64_t loading_ns; /* till when a program is loaded that has had a Python before */
};

/* The next moment at which news are to be taken for their own sake; 0: when some come. */
int64_t news__due(const struct news *news);

/* Fills FDS for poll(2), and takes note of what that found. */
void news__await(const struct news *news, struct pollfd fds[NEWS_FDS]);
void news__note(struct news *news, const struct pollfd fds[NEWS_FDS]);

/* Takes what was told, unless that is put off; NOW is now_ns().  Returns how many there were. */
size_t news__take(struct news *news, int64_t now);

#endif
