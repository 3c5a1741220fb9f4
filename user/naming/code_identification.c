// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF reads the identity of a code object for each frame of each sample, so the cost grows with the
 * rate and the depth of stacks.  It may take 1 % of the CPU time that the process uses.  That
 * allows 160 frames at 99 Hz wholly, or 100 frames at 999 Hz by words.  If code was replaced, or if
 * the process is new, more replacements are likely: then it may take up to 50 % for a while.  That
 * allows 80 frames at 9,999 Hz wholly, or 500 by words.
 */
#include "naming/code_identification.h"

/* Checks without a replaced code object before the cost is lowered again, 10 s: if two code objects
 * take turns at an address, most checks see the same one as the last check. */
#define QUIET_CHECKS 50

/* Same for a new process: its start imports modules, and discards code that ran once. */
#define FIRST_CHECKS 5

/* As many frames per second take 1 % of a CPU.  A frame takes 0.1 us by words, 0.6 us wholly. */
#define FRAMES_BY_WORDS 100000.0
#define FRAMES_WHOLLY	16000.0

/* The current kind may cost more by this factor: a change has its own cost. */
#define KEPT 1.5

/* The factor while replacements are likely. */
#define EXCEPTION 50

/* The depth is averaged over at least as many recent samples. */
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

/* The cost, as a multiple of the usual limit. */
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
