/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes a sample of a child that only spins, in the same way as `record`. */
#ifndef PYBPFPROF_TRIAL_H
#define PYBPFPROF_TRIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "pybpfprof.h"

/* The result of each step: 0 or -errno.  If a step fails, those that depend on it are not tried. */
struct trial {
	enum exit_status files; /* allow enough open files */
	int child;		/* start a process */
	int finding;		/* search its files for a Python */
	int reading;		/* read its memory */
	int thread;		/* after the child ended, start the thread that reads processes */
	int company;		/* start the processes that run beside it */
	int opening;		/* open a perf event */
	int loading;		/* load the BPF program */
	int following;		/* attach to forks, execs and exits */
	int starting;		/* attach the program to perf events */
	int mappings;		/* load a program that sees mappings */
	int native;		/* load the walk of native frames, and add to its tables */
	int switches;		/* load programs for switches of threads, and for each thread */
	pid_t pid;		/* of the child */
	bool compiled;		/* the kernel's JIT compiled the program */
	bool killed;		/* the trial, as the kernel does if memory is short */
	uint64_t samples;
	enum outcome outcome; /* of the last sample; OUTCOME_NO_INTERPRETER is right */
};

/* Tries all steps, with COMPANY processes beside the thread that reads other processes.  The result
 * is never freed. */
const struct trial *trial__run(unsigned int company);

#endif
