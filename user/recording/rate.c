// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "base/log.h"
#include "recording/privileges.h"
#include "recording/rate.h"
#include "events/periods.h"

/* Fewer expected samples than this say little. */
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
 * This only warns.  It does not correct times by giving each sample more weight, because the CPU
 * time is not exact.  That of a process that has ended is not known.  That of a started process
 * includes the time before its Python was found.  Its unit is 10 ms.  With such weights, two
 * profiles of one program would differ if it happened to end in time in one of them.
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
