/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the user named: processes, or a program to start.  Processes are opened before sampling can
 * begin, so that errors are reported at once.  A started program's end is waited for, and that of
 * the Pythons that it leaves running.  watch__open and watch__start_command are here, too.
 */
#ifndef PYBPFPROF_NAMED_H
#define PYBPFPROF_NAMED_H

#include <stdbool.h>
#include <stdint.h>

struct watch;

/* Has BPF sample what the opened processes run now.  0 or -errno. */
int named__sample(struct watch *watch, int64_t now);

/* Warns why there are no samples: what the named processes did instead of running.  USED_S is the
 * CPU time that they used, seconds. */
void named__explain_idle(const struct watch *watch, double used_s);

/* Notes the program's end, and logs once what it left running.  The second: when to call it;
 * INT64_MAX: no time is. */
void named__look(struct watch *watch, int64_t now);
int64_t named__due(const struct watch *watch);

/* Whether the program has ended, and every Python that it started. */
bool named__is_over(const struct watch *watch);

#endif
