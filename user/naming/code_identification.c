// SPDX-License-Identifier: BSD-2-Clause
/*
 * What tells code objects apart is read of each frame of each sample, so what it takes
 * grows with the rate and with the stacks' depth: it may take 1 % of what the process
 * uses itself.  That leaves 160 frames at 99 Hz wholly, 100 frames at 999 Hz by their
 * words.  Where code was replaced, or the process has just begun, and more of that is to
 * be expected, it may take up to half for a while: 80 frames at 9,999 Hz wholly, 500 by
 * their words.
 */
#include "naming/code_identification.h"

/* Checks without a replaced code object until more need not be spent any more: 10 s, for where two
 * take turns at an address, most checks see the same one as the last. */
#define QUIET_CHECKS 50

/* The same for a process that is new here: what starts imports, and throws away what ran once. */
#define FIRST_CHECKS 5

/* So many frames a second take 1 % of a CPU: by words 0.1 us each, wholly 0.6 us. */
#define FRAMES_BY_WORDS 100000.0
#define FRAMES_WHOLLY	16000.0

/* What is read by now may take so much more than what is not, for to change has its own price. */
#define KEPT 1.5

/* What it may take of that for a while. */
#define EXCEPTION 50

/* Of how many samples at least it is known how deep those are that come now. */
#define SAMPLES 1024

void code_identification__begin(struct code_identification *identification)
{
	*identification = (struct code_identification){
		.now = IDENTIFIED_WHOLLY,
		.least = IDENTIFIED_WHOLLY,
		.checks_to_go = FIRST_CHECKS,
	};
}

void code_identification__see(struct code_identification *identification, uint32_t depth,
			      uint64_t samples)
{
	identification->samples += samples;
	identification->frames += depth * samples;
	while (identification->samples > 2 * SAMPLES) {
		identification->samples /= 2;
		identification->frames /= 2;
	}
}

bool code_identification__was_whole(const struct code_identification *identification)
{
	return identification->least == IDENTIFIED_WHOLLY;
}

/* What it takes, as a part of what it may take in general. */
static double price(const struct code_identification *identification, enum identification kind,
		    const struct identified_process *process)
{
	double depth = identification->samples
			       ? (double)identification->frames / (double)identification->samples
			       : 1;
	double most = kind == IDENTIFIED_WHOLLY && !process->has_version ? FRAMES_WHOLLY
									 : FRAMES_BY_WORDS;

	return process->rate_hz * depth / most;
}

static bool affords(const struct code_identification *identification, enum identification kind,
		    const struct identified_process *process)
{
	double most = 1;

	if (identification->checks_to_go)
		most = EXCEPTION;
	else if (identification->now >= kind)
		most = KEPT;
	return price(identification, kind, process) <= most;
}

bool code_identification__is_settled(const struct code_identification *identification,
				     const struct identified_process *process)
{
	return identification->now == IDENTIFIED_WHOLLY &&
	       code_identification__was_whole(identification) &&
	       price(identification, IDENTIFIED_WHOLLY, process) <= 1;
}

static enum identification choose(const struct code_identification *identification,
				  const struct identified_process *process)
{
	if (affords(identification, IDENTIFIED_WHOLLY, process))
		return IDENTIFIED_WHOLLY;
	return !process->has_version && affords(identification, IDENTIFIED_BY_WORDS, process)
		       ? IDENTIFIED_BY_WORDS
		       : IDENTIFIED_NOT;
}

bool code_identification__choose(struct code_identification *identification,
				 const struct identified_process *process)
{
	enum identification before = identification->now;

	if (process->replaced)
		identification->checks_to_go = QUIET_CHECKS;
	else if (identification->checks_to_go)
		identification->checks_to_go--;
	identification->now = choose(identification, process);
	identification->least = before < identification->now ? before : identification->now;
	return identification->now != before;
}
