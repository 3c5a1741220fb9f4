/* SPDX-License-Identifier: BSD-2-Clause */
/* FUSE mounts.  The kernel lets only the user that mounted one read it, and not even root. */
#ifndef PYBPFPROF_FUSE_MOUNT_H
#define PYBPFPROF_FUSE_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether process PID maps a file of such a mount as program or library.  *OWNER: the user that may
 * read it. */
bool fuse_mount__owner(pid_t pid, uid_t *owner);

#endif
