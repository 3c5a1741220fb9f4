// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "agent/allowance.h"
#include "base/now.h"

#define UNUSED_NS 10000000000LL

void allowance__charge(struct allowance *allowance, int64_t cost_ns, double share)
{
	int64_t now = now_ns(), paid_ns = allowance->paid_ns;

	if (paid_ns < now - UNUSED_NS)
		paid_ns = now - UNUSED_NS;
	/* The limit prevents an overflow; it is far beyond any patience. */
	paid_ns += (int64_t)fmin(cost_ns / share, INT32_MAX * 1e6);
	if (paid_ns > now + allowance->patience_ns)
		paid_ns = now + allowance->patience_ns;
	allowance->paid_ns = paid_ns;
}

int64_t allowance__wait_ns(const struct allowance *allowance)
{
	int64_t wait_ns = allowance->paid_ns - now_ns();

	return wait_ns > 0 ? wait_ns : 0;
}
