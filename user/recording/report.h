/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recording prints on standard error: its progress, and its result. */
#ifndef PYBPFPROF_REPORT_H
#define PYBPFPROF_REPORT_H

#include <stdbool.h>

#include "profile/profile.h"

/* Whether progress is shown: on a terminal, without -q. */
bool report__shows_progress(void);

/* Shows one line in place of the last one: the samples of the COUNT events that LEDGERS has so far,
 * after ELAPSED of DURATION seconds (0: no end). */
void report__progress(double elapsed_s, double duration_s, const struct ledger *ledgers,
		      uint32_t count);

/* Prints the ten hottest functions, without HIDDEN kinds of frames (profile__totals), and the
 * ledger.  FILTERED: a filter chose the processes. */
void report__profile(const struct profile *profile, unsigned int hidden, bool filtered);

#endif
