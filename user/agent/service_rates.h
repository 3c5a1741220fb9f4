/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services that are sampled below the common rate, and how often their rate is halved.  A
 * service is a set of labels.
 *
 * The cost of sampling a service grows with its samples.  A service that has many times the samples
 * of the others still has enough of them at a lower rate.
 */
#ifndef PYBPFPROF_SERVICE_RATES_H
#define PYBPFPROF_SERVICE_RATES_H

#include <stdbool.h>
#include <stddef.h>

#include "services/labelled_window.h"

/* All numbers of halvings are below this. */
#define SERVICE_HALVINGS_MAX 32

struct service_rates;

/* Knows no service yet.  Free with service_rates__free, which takes NULL. */
struct service_rates *service_rates__new(void);
void service_rates__free(struct service_rates *rates);

/* Counts the samples of each service in WINDOW, which becomes the last window. */
void service_rates__count(struct service_rates *rates, const struct labelled_window *window);

/* How often the rate of PROCESS is halved, by its index in the last window's profile; negative if
 * no samples of it were counted for a service. */
int service_rates__of_process(const struct service_rates *rates, uint32_t process);

/* Halves the rate of the services that dominate the last window, unless it would fall below
 * LEAST_HZ.  RATE_HZ is the common rate.  Returns the names and rates of these services, which the
 * caller frees; NULL: there are none.  This function, raise, limit and has_lowered take NULL as
 * RATES: no services. */
char *service_rates__lower(struct service_rates *rates, double rate_hz, double least_hz);

/* Doubles the rate of the services with the lowest one.  Returns their names as above; NULL: all
 * services have the common rate. */
char *service_rates__raise(struct service_rates *rates, double rate_hz);

/* How often RATE_HZ can be halved without falling below LEAST_HZ. */
unsigned int service_rates__most_halvings(double rate_hz, double least_hz);

/* Limits the halvings of every service to MOST. */
void service_rates__limit(struct service_rates *rates, unsigned int most);

/* Whether any service has a lower rate. */
bool service_rates__has_lowered(const struct service_rates *rates);

/* COUNTS: the services of the last window, by how often their rate is halved. */
void service_rates__tell(const struct service_rates *rates, size_t counts[SERVICE_HALVINGS_MAX]);

#endif
