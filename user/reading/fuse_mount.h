/* SPDX-License-Identifier: BSD-2-Clause */
/* FUSE mounts, which the kernel lets nobody read but the user who mounted them: not even root. */
#ifndef PYBPFPROF_FUSE_MOUNT_H
#define PYBPFPROF_FUSE_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether process PID maps a file in such a mount, as a program or as its library: then *OWNER is
 * who may read it. */
bool fuse_mount__owner(pid_t pid, uid_t *owner);

#endif
