/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that are profiled. */
#ifndef PYBPFPROF_TARGETS_H
#define PYBPFPROF_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "processes/identity.h"
#include "python/runtime.h"
#include "reading/process.h"
#include "sampling/target_map.h"

struct target_process {
	struct process process;
	struct target_key key;	/* what the kernel side knows it by */
	struct runtime runtime; /* of a Python that is not supported, its version alone, or zero */
	struct identity identity;
	/* Its code objects have versions that others had before them: an interpreter has followed
	 * another one. */
	bool versions_repeat;
	uint64_t parent;   /* the serial of the one that forked it; 0: it was not forked */
	uint64_t ancestor; /* that of the first one whose memory it began with; 0: it was not */
	unsigned int renamings; /* how often its names were read again */
	bool ended;		/* nothing of it can be read any more */
	unsigned int halvings;	/* of its rate */
	/* Why it is not walked: what its samples come to; OUTCOME_PYTHON where it is. */
	enum outcome outcome;
};

/* Opens process PID, which the user named, and finds its Python.  STATUS_WRITTEN with *TARGET for
 * target__free, NULL where it is none and none is NEEDED; or how the program is to end, unless it
 * can do without a process that is *SILENT, which did not answer (deputy.h); then what is wrong and
 * what mends it was said. */
enum exit_status target__open(pid_t pid, bool needed, bool *silent, struct target_process **target);
void target__free(struct target_process *target);

/* Looks once for the Python of process PID, and says nothing.  *SIGNATURE, at first 0, tells what
 * it maps: where that has not changed, nothing is read again.  0 with *TARGET for target__free;
 * -EAGAIN where that may come, -EINPROGRESS where it does not answer for now; -ENOEXEC where there
 * is none; -ENOTSUP with *TARGET, of which the version is told; -ESRCH; -EPERM and others where it
 * cannot be read. */
int target__look(pid_t pid, uint64_t *signature, struct target_process **target);

/* The process PID, of which nothing is known but whose it is; for target__free. */
struct target_process *target__unknown(pid_t pid);

/* The process PID, which PARENT has forked; for target__free. */
struct target_process *target__fork(const struct target_process *parent, pid_t pid);

/* The process PID, whose Python is RUNTIME, and which was started with the BYTES of ARGUMENTS, each
 * with a NUL; for target__free. */
struct target_process *target__adopt(pid_t pid, const struct runtime *runtime,
				     const char *arguments, size_t bytes);

/* What was read of TARGET is of another one that has its number by now: it is known by its
 * ARGUMENTS alone. */
void target__disown(struct target_process *target, const char *arguments, size_t bytes);

/* Reads again whose TARGET is, WHAT of it may have changed.  False, with what was known before,
 * where it cannot be read any more, or its owner is the same; or where what was read may be another
 * one's: MAP does not hold it any more, or it executes another program. */
bool target__identify(struct target_process *target, const struct target_map *map,
		      enum identify what);

/* What of TARGET is to be read again, where that is done now and then. */
enum identify target__changeable(struct target_process *target);

/* Says what of a process the profile will not show. */
void target__warn_of_limits(const struct target_process *target);

/* Its short name, safe on a terminal; the caller frees. */
char *target__plain_name(const struct target_process *target);

/* CPU time that a process has used so far, seconds; negative where it has ended. */
double target__cpu_seconds(const struct target_process *target);

/* Whether the process has ended. */
bool target__has_ended(const struct target_process *target);

/* Says why the Python of process PID, which runtime__find refused with ERROR, cannot be profiled.
 */
enum exit_status target__explain(pid_t pid, const struct runtime *runtime, int error);

#endif
