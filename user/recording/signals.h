/* SPDX-License-Identifier: BSD-2-Clause */
/* The signals that end a recording, or have it read its configuration again. */
#ifndef PYBPFPROF_SIGNALS_H
#define PYBPFPROF_SIGNALS_H

#include <stdbool.h>

/* Blocks SIGINT, SIGTERM and SIGHUP, with RELOADS also a SIGHUP that is ignored.  A signalfd that
 * they are read from, which the caller closes, or -errno, with none blocked. */
int signals__block(bool reloads);

#endif
