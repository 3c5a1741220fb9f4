// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "profile/rate_scale.h"

#define COUNT_MAX 0x1p62

double rate_scale__weight(struct rate_scale *scale, double rate_hz)
{
	if (!(scale->first_hz > 0))
		*scale = (struct rate_scale){ rate_hz, rate_hz, rate_hz };
	scale->lowest_hz = fmin(scale->lowest_hz, rate_hz);
	scale->highest_hz = fmax(scale->highest_hz, rate_hz);
	return scale->first_hz / rate_hz;
}

uint64_t rate_scale__count(const struct rate_scale *scale, double sum, double *rest)
{
	double factor = scale->first_hz > 0 ? scale->highest_hz / scale->first_hz : 1;
	/* More than that only a store that is not as it was written can have. */
	double value = fmin(sum * factor + *rest, COUNT_MAX), count = round(value);

	*rest = value - count;
	return count;
}
