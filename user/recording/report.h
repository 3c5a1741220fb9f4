/* SPDX-License-Identifier: BSD-2-Clause */
/* What is told on standard error while a profile is taken, and at its end. */
#ifndef PYBPFPROF_REPORT_H
#define PYBPFPROF_REPORT_H

#include <stdbool.h>

#include "profile/profile.h"

/* Whether progress is shown: on a terminal, and not with -q. */
bool report__shows_progress(void);

/* One line, in place of the one before: EVENTS and LOST so far, after ELAPSED of DURATION seconds
 * (0: no end). */
void report__progress(double elapsed_s, double duration_s, uint64_t events, uint64_t lost);

/* The ten hottest functions, without HIDDEN kinds (profile__totals), and the ledger; FILTERED: not
 * all processes were wanted. */
void report__profile(const struct profile *profile, unsigned int hidden, bool filtered);

#endif
