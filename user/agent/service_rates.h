/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which services, each a set of labels, are sampled at less than the rate of all, and
 * how much less: their rate is halved so often.
 *
 * What it costs to sample a service goes with its samples.  One that takes many times
 * as many as the others do has enough of them to be told at a lower rate.
 */
#ifndef PYBPFPROF_SERVICE_RATES_H
#define PYBPFPROF_SERVICE_RATES_H

#include <stdbool.h>
#include <stddef.h>

#include "services/labelled_window.h"

/* No rate is halved as often as that. */
#define SERVICE_HALVINGS_MAX 32

struct service_rates;

/* No service is known.  Free with service_rates__free, NULL too. */
struct service_rates *service_rates__new(void);
void service_rates__free(struct service_rates *rates);

/* Takes note of what each service of WINDOW took, the last one from now on. */
void service_rates__count(struct service_rates *rates, const struct labelled_window *window);

/* How often the rate of PROCESS is halved by its number in the last window's profile; negative
 * where it had no samples. */
int service_rates__of_process(const struct service_rates *rates, uint32_t process);

/* Halves the rate of those services that dominate the last window, with RATE_HZ the rate of all,
 * where it will not be less than LEAST_HZ; a text that says whose, which the caller frees.  NULL:
 * there are no such.  As the next, it takes no RATES for no services. */
char *service_rates__lower(struct service_rates *rates, double rate_hz, double least_hz);

/* Doubles the rate of those that have the lowest one; as above.  NULL: all have the rate of all. */
char *service_rates__raise(struct service_rates *rates, double rate_hz);

/* How often RATE_HZ may be halved and is not less than LEAST_HZ. */
unsigned int service_rates__most_halvings(double rate_hz, double least_hz);

/* Has no service's rate halved more often than MOST. */
void service_rates__limit(struct service_rates *rates, unsigned int most);

/* Whether any has a lower rate. */
bool service_rates__has_lowered(const struct service_rates *rates);

/* How many services of the last window have a rate that is halved so often. */
void service_rates__tell(const struct service_rates *rates, size_t counts[SERVICE_HALVINGS_MAX]);

#endif
