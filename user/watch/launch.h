/* SPDX-License-Identifier: BSD-2-Clause */
/* The program that is started to be profiled: waits for its end, and for the Pythons that it leaves
 * running.  watch__start_command is here, too. */
#ifndef PYBPFPROF_LAUNCH_H
#define PYBPFPROF_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch;

/* Notes the program's end, and logs once what it left running. */
void launch__look(struct watch *watch, int64_t now);

/* When launch__look is to be called; INT64_MAX: no time is. */
int64_t launch__due(const struct watch *watch);

/* Whether the program has ended, and every Python that it started. */
bool launch__is_over(const struct watch *watch);

#endif
