/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that the kernel side has sampled, and that are not to be in the profile: what runs a
 * file that is known is walked at once, and whether it is wanted is asked afterwards.
 *
 * The samples of those of which that is not known are kept apart: once it is found that a process
 * is not wanted, none of its samples is of an unknown one.
 */
#ifndef PYBPFPROF_LEFT_OUT_H
#define PYBPFPROF_LEFT_OUT_H

#include <stdint.h>

#include "profile/ledger.h"

enum leaving {
	LEFT_IN,       /* it is none of these */
	LEFT_UNWANTED, /* the filter leaves it out */
	LEFT_UNKNOWN,  /* it ended before it was known whether the filter does */
};

struct left_out;

/* None; free with left_out__free, NULL too. */
struct left_out *left_out__new(void);
void left_out__free(struct left_out *left_out);

/* The process SERIAL, which was started as COMMAND (NULL: not known), is one, for that reason:
 * until it is taken in, or no sample can be on its way any more, two settlements later, for it is
 * not sampled from now on. */
void left_out__add(struct left_out *left_out, uint64_t serial, enum leaving why,
		   const char *command);
void left_out__take_in(struct left_out *left_out, uint64_t serial);
void left_out__settle(struct left_out *left_out);

enum leaving left_out__find(const struct left_out *left_out, uint64_t serial);

/* A number for process SERIAL, which is one, that no other has; and SAMPLES of the process with
 * such a NUMBER, which came when it was not known whether it is wanted. */
uint32_t left_out__number(const struct left_out *left_out, uint64_t serial);
void left_out__count(struct left_out *left_out, uint32_t number, uint64_t samples);

/* No sample can come any more: what is not known by now never is. */
void left_out__end(struct left_out *left_out);

/* Adds those samples of what is not one any more, but for what has turned out to be unwanted. */
void left_out__account(const struct left_out *left_out, struct unknown_processes *unknown);

#endif
