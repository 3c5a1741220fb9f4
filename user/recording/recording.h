/* SPDX-License-Identifier: BSD-2-Clause */
/* One recording: targets, the sampler and the profile that it fills, from start to end. */
#ifndef PYBPFPROF_RECORDING_H
#define PYBPFPROF_RECORDING_H

#include <stdbool.h>

#include "base/exit_status.h"
#include "profile/profile.h"
#include "recording/recording_plan.h"
#include "sampling/targets.h"

struct recording;

/* What was sampled from one cut to the next. */
struct window {
	int64_t start_unix_ns, end_unix_ns;
	const struct profile *profile;	   /* its samples, but not its ledgers, are the window's */
	struct ledger ledgers[EVENTS_MAX]; /* of each event */
};

/* Cuts what is sampled into windows of LENGTH_NS, each of which TAKE is given; what ends sooner is
 * one, too.  Every sample is in one of them, and their ledgers add up to the last one's of all. */
struct recording_windows {
	int64_t length_ns;
	void (*take)(void *context, const struct window *window);
	void (*hang_up)(void *context); /* upon SIGHUP; NULL: that ends the recording */
	int fd; /* readable when there is something to serve; negative: not for now */
	/* Serves it, and returns in how many nanoseconds it is to be called at the latest. */
	int64_t (*serve)(void *context);
	void *context;
};

/* Opens the targets and the kernel side, as far as they can be known to work; WINDOWS, which must
 * outlive it, NULL: the profile has it all.  STATUS_WRITTEN with *RECORDING for recording__free, or
 * how the program is to end after what is wrong was said. */
enum exit_status recording__open(const struct recording_plan *plan,
				 const struct recording_windows *windows,
				 struct recording **recording);
void recording__free(struct recording *recording);

/* Samples until the time is up, a signal comes, or all targets have ended; the profile is then
 * complete.  Also where this fails in between, what was sampled is in the profile. */
enum exit_status recording__run(struct recording *recording);

/* From the next cut on, RATE_HZ: each process has one rate in a window.  AT_ONCE: that cut is now.
 * WINDOWS, too, may change then. */
void recording__set_rate(struct recording *recording, double rate_hz, bool at_once);

/* From now on, the process that the profile knows by SERIAL is sampled at the rate of all halved so
 * often, as what it forks is from its beginning on; and no process at one that is halved more often
 * than MOST. */
void recording__halve_rate(struct recording *recording, uint64_t serial, unsigned int halvings);
void recording__limit_halvings(struct recording *recording, unsigned int most);

/* At the end of this cut, forgets what no process that is left needs, and gives its memory back. To
 * be called when a window is taken. */
void recording__tidy(struct recording *recording);

/* What was sampled since the last cut, of which WINDOW has no more than is valid until then: it is
 * settled, and stays. */
void recording__look(struct recording *recording, struct window *window);

/* What became of all samples so far: LEDGERS, an array of EVENTS_MAX, gets one for each event. */
void recording__account(const struct recording *recording, struct ledger *ledgers);

/* By how much windows are told later than it is, for the clock was set back. */
int64_t recording__ahead_ns(const struct recording *recording);

/* The processes whose samples are taken; how many.  The caller frees *TARGETS, which are valid
 * until the recording goes on. */
size_t recording__targets(const struct recording *recording, struct target_process ***targets);

const struct profile *recording__profile(const struct recording *recording);

/* The first target's process ID. */
pid_t recording__pid(const struct recording *recording);

#endif
