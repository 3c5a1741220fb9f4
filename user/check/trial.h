/* SPDX-License-Identifier: BSD-2-Clause */
/* One sample, taken as `record` takes it: of a child that does nothing but spin. */
#ifndef PYBPFPROF_TRIAL_H
#define PYBPFPROF_TRIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "pybpfprof.h"

/* 0 or -errno of each step; but for the last, those before which another one failed were not
 * tried. */
struct trial {
	enum exit_status files; /* whether enough may be open */
	int child;		/* a process could be started ... */
	int finding;		/* ... its files can be looked for a Python ... */
	int reading;		/* ... and its memory can be read */
	int thread;		/* what reads others could be started, once that had ended ... */
	int company;		/* ... and what runs beside it */
	int opening;		/* the perf events */
	int loading;		/* the BPF program */
	int following;		/* ... to which the kernel tells what becomes of processes */
	int starting;		/* the events with the program */
	int mappings;		/* a program that is told what processes map */
	int native;		/* the walk of native frames, and a chunk of its tables */
	pid_t pid;		/* the child's */
	bool compiled;		/* the program, by the kernel */
	bool killed;		/* what tried that, as the kernel does where memory is short */
	uint64_t samples;
	enum outcome outcome; /* of the last sample; that of a Python that has not begun is good */
};

/* Tries all that, and whether COMPANY processes and threads can run beside the one that reads
 * others.  The result is never freed. */
const struct trial *trial__run(unsigned int company);

#endif
