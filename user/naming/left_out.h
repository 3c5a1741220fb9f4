/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that the kernel side has sampled, and that are not to be in the profile: what runs a
 * file that is known is walked at once, and whether it is wanted is asked afterwards.
 */
#ifndef PYBPFPROF_LEFT_OUT_H
#define PYBPFPROF_LEFT_OUT_H

#include <stdint.h>

enum leaving {
	LEFT_IN,       /* it is none of these */
	LEFT_UNWANTED, /* the filter leaves it out */
	LEFT_UNKNOWN,  /* it ended before it was known whether the filter does */
};

struct left_out;

/* None; free with left_out__free, NULL too. */
struct left_out *left_out__new(void);
void left_out__free(struct left_out *left_out);

/* The process SERIAL is one, for that reason: until it is taken in, or no sample can be on its way
 * any more, two settlements later, for it is not sampled from now on. */
void left_out__add(struct left_out *left_out, uint64_t serial, enum leaving why);
void left_out__take_in(struct left_out *left_out, uint64_t serial);
void left_out__settle(struct left_out *left_out);

enum leaving left_out__find(const struct left_out *left_out, uint64_t serial);

#endif
