/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses how much BPF reads of a process's code objects to tell them apart. */
#ifndef PYBPFPROF_CODE_IDENTIFICATION_H
#define PYBPFPROF_CODE_IDENTIFICATION_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpfprof.h"

struct code_identification {
	enum identification now;   /* what BPF does */
	enum identification least; /* the least that BPF did since the check before the last one */
	unsigned int checks_to_go; /* while the higher limit applies */
	uint64_t samples, frames;  /* recent ones, for the mean depth of stacks */
};

/* A new process is identified wholly. */
void code_identification__begin(struct code_identification *identification);

/* Counts SAMPLES of a stack of DEPTH frames. */
void code_identification__see(struct code_identification *identification, uint32_t depth,
			      uint64_t samples);

/* A process at a check. */
struct identified_process {
	double rate_hz;	  /* samples per second of busy CPU */
	bool has_version; /* its code objects have versions: one read identifies them wholly */
	bool replaced;	  /* a code object was replaced since the last check */
};

/* Whether all samples that are not in the profile yet were identified wholly.  Samples that came
 * during a check are in the profile after the next one. */
bool code_identification__was_whole(const struct code_identification *identification);

/* Whether they were, and further checks cannot change that. */
bool code_identification__is_settled(const struct code_identification *identification,
				     const struct identified_process *process);

/* Chooses anew, in NOW.  Returns whether it has changed. */
bool code_identification__choose(struct code_identification *identification,
				 const struct identified_process *process);

#endif
