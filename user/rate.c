// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "log.h"
#include "privileges.h"
#include "rate.h"

/* Below this many samples, how many came says little. */
#define SAMPLES_TO_JUDGE 200

double rate__choose(double wanted_hz, double *limit_hz)
{
	*limit_hz = privileges__rate_limit();
	if (*limit_hz <= 0)
		*limit_hz = HUGE_VAL;
	if (wanted_hz <= *limit_hz)
		return wanted_hz;
	log__warning("rate lowered from %g to %g Hz, the kernel's limit: sysctl "
		     "kernel.perf_event_max_sample_rate raises it",
		     wanted_hz, *limit_hz);
	return *limit_hz;
}

void rate__judge(const struct ledger *ledger, double cpu_s)
{
	double wanted = cpu_s * ledger->rate_hz;

	if (wanted < SAMPLES_TO_JUDGE || ledger->events > 0.85 * wanted)
		return;
	log__warning("the kernel took only %.0f%% of the samples of %.1f s of CPU time: what is "
		     "told in seconds is too low by that, the shares are right; -r lower helps",
		     100 * ledger->events / wanted, cpu_s);
}
