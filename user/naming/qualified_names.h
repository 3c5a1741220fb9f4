/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the qualified names of functions whose code objects have none: those before 3.11, and those
 * that a program made while it ran. */
#ifndef PYBPFPROF_QUALIFIED_NAMES_H
#define PYBPFPROF_QUALIFIED_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "naming/code_table.h"
#include "profile/profile.h"
#include "sampling/targets.h"

struct qualified_names;

/* Names functions of PROFILE, which must outlive it.  Free with qualified_names__free, which takes
 * NULL. */
struct qualified_names *qualified_names__new(struct profile *profile);
void qualified_names__free(struct qualified_names *names);

/* Looks for the qualified name of CODE, a code object of TARGET, whose function has a bare name in
 * the profile.  Does nothing if code objects have qualified names, unless the function is
 * a generated one with an entry of its own. */
void qualified_names__want(struct qualified_names *names, const struct target_process *target,
			   const struct known_code *code);

/* Searches for a short time if that is due at NOW_NS.  THREAD_NAMES_ALL: searches at once, and for
 * longer. */
void qualified_names__read(struct qualified_names *names, int64_t now_ns);

/* Whether qualified_names__read has nothing to do. */
bool qualified_names__are_all_found(const struct qualified_names *names);

/* TARGET has ended: what was not found keeps its bare name. */
void qualified_names__forget(struct qualified_names *names, const struct target_process *target);

/* Forgets the wanted names, as the profile has begun anew.  Keeps the results. */
void qualified_names__begin_anew(struct qualified_names *names);

#endif
