/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that are profiled. */
#ifndef PYBPFPROF_TARGETS_H
#define PYBPFPROF_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "processes/identity.h"
#include "python/runtime.h"
#include "reading/process.h"
#include "sampling/target_map.h"

struct target_process {
	struct process process;
	struct target_key key;
	struct runtime runtime; /* of a Python that is not supported: at most its version */
	struct identity identity;
	/* An interpreter has followed another one, so code objects have versions that others had
	 * before them. */
	bool versions_repeat;
	uint64_t parent;	 /* the serial of the parent; 0: it was not forked */
	uint64_t ancestor;	 /* of the oldest target that it was forked from; 0: it was not */
	unsigned int renamings;	 /* how often its names were read again */
	bool ended;		 /* nothing more of it can be read */
	unsigned int rate_shift; /* as in BPF's map: how often its rate is halved */
	enum outcome outcome;	 /* of its samples where it is not walked, or OUTCOME_PYTHON */
};

void target__free(struct target_process *target);

/* Looks once for the Python of process PID, without messages.  *SIGNATURE, at first 0, is that of
 * the mappings: while they stay the same, nothing is read again.  0 with *TARGET for target__free;
 * -ENOTSUP, too, with *TARGET, whose Python is not supported; -EAGAIN where a Python may still
 * come; -EINPROGRESS where the process does not answer for now; -ENOEXEC where there is none;
 * -ESRCH; -EPERM and others where the process cannot be read. */
int target__look(pid_t pid, uint64_t *signature, struct target_process **target);

/* Tells whether the mappings of process PID have changed, by an exec or a dlopen. */
uint64_t target__signature(pid_t pid);

/* Process PID, with its identity but no Python; for target__free. */
struct target_process *target__unknown(pid_t pid);

/* Process PID, which PARENT has forked; for target__free. */
struct target_process *target__fork(const struct target_process *parent, pid_t pid);

/* Process PID, whose Python is RUNTIME.  ARGUMENTS are the BYTES that it was started with, each
 * argument with a NUL; for target__free. */
struct target_process *target__adopt(pid_t pid, const struct runtime *runtime,
				     const char *arguments, size_t bytes);

/* Another process has TARGET's number now, and what was read may be of that one.  Keeps only what
 * its ARGUMENTS tell. */
void target__disown(struct target_process *target, const char *arguments, size_t bytes);

/* Reads the identity of TARGET again, as far as WHAT says.  False, with the old identity, where it
 * cannot be read, where the owner is the same, or where it may be another process's: MAP no longer
 * holds TARGET, or it executes another program. */
bool target__identify(struct target_process *target, const struct target_map *map,
		      enum identify what);

/* What to read again of TARGET's identity, where that is done at intervals. */
enum identify target__changeable(struct target_process *target);

/* Warns of what the profile of TARGET will not show. */
void target__warn_of_limits(const struct target_process *target);

/* The short name, safe on a terminal; the caller frees it. */
char *target__plain_name(const struct target_process *target);

/* CPU time used so far, in seconds; negative where the process has ended. */
double target__cpu_seconds(const struct target_process *target);

/* Whether the process has ended. */
bool target__has_ended(const struct target_process *target);

#endif
