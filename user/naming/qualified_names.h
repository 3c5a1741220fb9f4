/* SPDX-License-Identifier: BSD-2-Clause */
/* The qualified names of functions, where code objects have none: before 3.11; and of functions
 * that a program made while it ran. */
#ifndef PYBPFPROF_QUALIFIED_NAMES_H
#define PYBPFPROF_QUALIFIED_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "naming/code_table.h"
#include "profile/profile.h"
#include "sampling/targets.h"

struct qualified_names;

/* Names functions of PROFILE, which must outlive it.  Free with qualified_names__free, NULL too. */
struct qualified_names *qualified_names__new(struct profile *profile);
void qualified_names__free(struct qualified_names *names);

/* Has the name of CODE, a code object of TARGET, looked for; its function has the bare name in the
 * profile.  Nothing where code objects have qualified names themselves, but for those that are told
 * apart. */
void qualified_names__want(struct qualified_names *names, const struct target_process *target,
			   const struct known_code *code);

/* Looks for a while for what is wanted, where that is due at NOW_NS; THREAD_NAMES_ALL: at once, and
 * for longer. */
void qualified_names__read(struct qualified_names *names, int64_t now_ns);

/* Whether qualified_names__read has nothing to do. */
bool qualified_names__are_all_found(const struct qualified_names *names);

/* TARGET has ended: what is still wanted of it stays as it is. */
void qualified_names__forget(struct qualified_names *names, const struct target_process *target);

/* The profile has begun anew: all is to be wanted anew.  What was found is remembered. */
void qualified_names__begin_anew(struct qualified_names *names);

#endif
