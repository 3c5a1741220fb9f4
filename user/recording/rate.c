// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "base/log.h"
#include "recording/privileges.h"
#include "recording/rate.h"
#include "events/periods.h"

/* Below this many samples, how many came says little. */
#define SAMPLES_TO_JUDGE 200

double rate__choose(double wanted_hz, double *limit_hz)
{
	double highest;

	*limit_hz = privileges__rate_limit();
	if (*limit_hz <= 0)
		*limit_hz = HUGE_VAL;
	highest = periods__highest_rate(*limit_hz);
	if (wanted_hz <= highest)
		return wanted_hz;
	log__warning("rate lowered from %.10g to %.10g Hz, the highest irregular rate: the kernel "
		     "allows %.10g samples per second (kernel.perf_event_max_sample_rate), and its "
		     "timers 100000",
		     wanted_hz, highest, *limit_hz);
	return highest;
}

/*
 * Only said, and not made good for by giving each sample more weight.  The CPU
 * time is not known of a process that has ended; of a started one it includes
 * what came before its Python was found; and its unit is 10 ms.  Two profiles of
 * one program would differ by whether it happened to end in time.
 */
void rate__judge(const struct ledger *ledger, double cpu_s)
{
	double wanted = cpu_s * ledger->rate_hz;

	if (wanted < SAMPLES_TO_JUDGE || ledger->events > 0.85 * wanted)
		return;
	log__warning("the kernel took only %.0f%% of the samples of %.1f s of CPU time: shares are "
		     "right, but times are too low by that; use a lower rate with -r",
		     100 * ledger->events / wanted, cpu_s);
}
