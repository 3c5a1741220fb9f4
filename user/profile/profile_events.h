/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of several events: one event of them, and their ledgers. */
#ifndef PYBPFPROF_PROFILE_EVENTS_H
#define PYBPFPROF_PROFILE_EVENTS_H

#include "profile/profile.h"

/* PROFILE with the samples and the ledger of EVENT only.  It shares everything else with PROFILE,
 * which must outlive it.  Free with profile_events__free. */
struct profile *profile_events__only(const struct profile *profile, uint32_t event);
void profile_events__free(struct profile *only);

/* The same with the samples of all events as one with this NAME, which must outlive it: all events
 * must have one unit. */
struct profile *profile_events__joined(const struct profile *profile, const char *name);

/* The ledger of EVENT, with the data of the whole run, which is in the first ledger. */
struct ledger profile_events__ledger(const struct profile *profile, uint32_t event);

/* The index of the event NAME; -1: there is none. */
int profile_events__find(const struct profile *profile, const char *name);

/* Whether PROFILE has no samples, not even lost ones. */
bool profile_events__lack_samples(const struct profile *profile);

/* Notes that the clock is sampled at RATE_HZ from now on; other events have no rate. */
void profile_events__set_rate(struct profile *profile, double rate_hz);

/* The name of EVENT as a value type in pprof and OTLP: "page_faults", and "cpu" for the clock.
 * Pyroscope refuses "-" in it.  The caller frees it. */
char *profile_events__type(const struct profile_event *event);

struct json_t;

/* The profile's ledger as a JSON object, with each event's in "per_event"; a new reference. */
struct json_t *profile_events__json(const struct profile *profile);

#endif
