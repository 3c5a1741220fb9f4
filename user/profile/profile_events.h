/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of several events: one of them alone, and what became of the samples of each. */
#ifndef PYBPFPROF_PROFILE_EVENTS_H
#define PYBPFPROF_PROFILE_EVENTS_H

#include "profile/profile.h"

/* PROFILE with the samples and the ledger of EVENT alone, as its first event.  It shares all else
 * with PROFILE, which must outlive it; free with profile_events__free. */
struct profile *profile_events__only(const struct profile *profile, uint32_t event);
void profile_events__free(struct profile *only);

/* The ledger of EVENT, with what the first one's says of the whole run. */
struct ledger profile_events__ledger(const struct profile *profile, uint32_t event);

/* The number of the event with this NAME; -1: there is none. */
int profile_events__find(const struct profile *profile, const char *name);

/* What EVENT is called where a value has a type, as in pprof and OTLP: "page_faults", and "cpu" for
 * the clock.  Pyroscope refuses a "-" in it.  The caller frees. */
char *profile_events__type(const struct profile_event *event);

struct json_t;

/* The profile's ledger as a JSON object, with one for each event below "per_event".  The caller has
 * the reference; NULL: no memory. */
struct json_t *profile_events__json(const struct profile *profile);

#endif
