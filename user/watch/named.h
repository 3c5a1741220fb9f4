/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that the user named.  They are opened before sampling can begin, so that errors are
 * reported at once.  watch__open is here, too. */
#ifndef PYBPFPROF_NAMED_H
#define PYBPFPROF_NAMED_H

#include <stdint.h>

struct watch;

/* Has BPF sample the opened processes, or what they run now.  0 or -errno. */
int named__sample(struct watch *watch, int64_t now);

/* Warns why there are no samples: what the named processes did instead of running.  USED_S is the
 * CPU time that they used, seconds. */
void named__explain_idle(const struct watch *watch, double used_s);

void named__free(struct watch *watch);

#endif
