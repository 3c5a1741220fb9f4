/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads wait for, as a profile names it. */
#ifndef PYBPFPROF_WAITS_H
#define PYBPFPROF_WAITS_H

#include <stdint.h>

/* The text of WAIT, an enum wait_reason or a system call of this machine: "[sleep]", "[lock]",
 * "[wait4]".  The caller frees. */
char *wait__text(uint32_t wait);

#endif
