/* SPDX-License-Identifier: BSD-2-Clause */
/* The signals that end a recording, or reload its configuration. */
#ifndef PYBPFPROF_SIGNALS_H
#define PYBPFPROF_SIGNALS_H

#include <stdbool.h>

/* Blocks SIGINT, SIGTERM and SIGHUP, and ignores SIGPIPE.  If SIGHUP is ignored, it stays so,
 * unless RELOADS.  Returns a signalfd for them, which the caller closes, or -errno with none
 * blocked. */
int signals__block(bool reloads);

#endif
