/* SPDX-License-Identifier: BSD-2-Clause */
/* How much the kernel is to read of a process's code objects to tell them apart. */
#ifndef PYBPFPROF_CODE_IDENTIFICATION_H
#define PYBPFPROF_CODE_IDENTIFICATION_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpfprof.h"

struct code_identification {
	enum identification now;   /* what the kernel was told */
	enum identification least; /* what it was told since the check before the last one */
	unsigned int checks_to_go; /* for which wholly may take more than else */
	uint64_t samples, frames;  /* of late: how deep the stacks are */
};

/* For a process that is new here: wholly. */
void code_identification__begin(struct code_identification *identification);

/* There were so many SAMPLES of a stack of DEPTH frames. */
void code_identification__see(struct code_identification *identification, uint32_t depth,
			      uint64_t samples);

/* What is said of the process at a check. */
struct identified_process {
	double rate_hz;	  /* of samples, where it uses a CPU */
	bool has_version; /* its code objects have one: one read tells them apart wholly */
	bool replaced;	  /* since the last check, a code object of it was */
};

/* Whether all samples that are not in the profile yet were told apart wholly: what came during a
 * check waits for the next one. */
bool code_identification__was_whole(const struct code_identification *identification);

/* Whether they are, and will be from now on, whatever a check finds. */
bool code_identification__is_settled(const struct code_identification *identification,
				     const struct identified_process *process);

/* Chooses anew, in NOW; returns whether that is another one than before. */
bool code_identification__choose(struct code_identification *identification,
				 const struct identified_process *process);

#endif
