/* SPDX-License-Identifier: BSD-2-Clause */
/* One recording from start to end: its targets, its sampler, and the profile that it fills. */
#ifndef PYBPFPROF_RECORDING_H
#define PYBPFPROF_RECORDING_H

#include <stdbool.h>

#include "base/exit_status.h"
#include "profile/profile.h"
#include "recording/recording_plan.h"

struct recording;
struct watch;

/* What was sampled from one cut to the next. */
struct window {
	int64_t start_unix_ns, end_unix_ns;
	const struct profile *profile;	   /* its samples, but not its ledgers, are the window's */
	struct ledger ledgers[EVENTS_MAX]; /* of each event */
};

/* Cuts a recording into windows of LENGTH_NS, and passes each to TAKE; the last one may be shorter.
 * Every sample is in one window, and the windows' ledgers add up to that of the recording. */
struct recording_windows {
	int64_t length_ns;
	void (*take)(void *context, const struct window *window);
	void (*hang_up)(void *context); /* on SIGHUP; NULL: SIGHUP ends the recording */
	int fd; /* readable when there is something to serve; negative: none for now */
	/* Serves it.  Returns the nanoseconds until the next call at the latest; INT64_MAX: only if
	 * FD is readable. */
	int64_t (*serve)(void *context);
	void *context;
};

/* Opens the targets and loads the BPF program; nothing is sampled yet.  PLAN and WINDOWS must
 * outlive the recording.  WINDOWS NULL: the profile covers the whole recording.  Returns
 * STATUS_WRITTEN, or the exit status after an error was logged.  In both cases *RECORDING is for
 * recording__free, which takes NULL. */
enum exit_status recording__open(const struct recording_plan *plan,
				 const struct recording_windows *windows,
				 struct recording **recording);
void recording__free(struct recording *recording);

/* Samples until the duration is over, a signal comes, or all targets have ended; then completes the
 * profile.  Returns STATUS_WRITTEN, or the exit status after an error was logged, such as
 * STATUS_NO_SAMPLE.  After an error, the profile has what was sampled before it. */
enum exit_status recording__run(struct recording *recording);

/* Samples at RATE_HZ from the next cut on, so that each process has one rate in a window.  AT_ONCE:
 * that cut is now.  The caller may also change WINDOWS then. */
void recording__set_rate(struct recording *recording, double rate_hz, bool at_once);

/* Has the profile begin anew at the next cut, to free what no running process needs. */
void recording__tidy(struct recording *recording);

/* Settles the samples since the last cut.  WINDOW shows them, and is valid until the recording goes
 * on.  They stay in the current window. */
void recording__look(struct recording *recording, struct window *window);

/* LEDGERS, an array of EVENTS_MAX, gets the ledger of each event so far. */
void recording__account(const struct recording *recording, struct ledger *ledgers);

/* How far the times of windows are ahead of the clock, after it was set back. */
int64_t recording__ahead_ns(const struct recording *recording);

const struct profile *recording__profile(const struct recording *recording);

/* The processes that it follows. */
struct watch *recording__watch(const struct recording *recording);

#endif
