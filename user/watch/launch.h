/* SPDX-License-Identifier: BSD-2-Clause */
/* The program that is started to be profiled: the part of watch.c that waits for it, and for the
 * Pythons that it leaves behind.  watch__start_command is here, too. */
#ifndef PYBPFPROF_LAUNCH_H
#define PYBPFPROF_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch;

/* Takes note of the program's end, and names what is waited for then. */
void launch__look(struct watch *watch, int64_t now);

/* When launch__look is to be called at the latest; INT64_MAX: never for its own sake. */
int64_t launch__due(const struct watch *watch);

/* Whether the program has ended, and every Python that it started. */
bool launch__is_over(const struct watch *watch);

#endif
