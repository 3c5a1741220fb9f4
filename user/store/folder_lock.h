/* SPDX-License-Identifier: BSD-2-Clause */
/* A lock on a folder, for a single writer. */
#ifndef PYBPFPROF_FOLDER_LOCK_H
#define PYBPFPROF_FOLDER_LOCK_H

/* Locks the folder PATH, relative to AT as openat(2).  Waits for some seconds if another process
 * has the lock: the previous agent may be about to exit.  Returns a descriptor; closing it releases
 * the lock.  -1 with errno: EWOULDBLOCK if another process keeps the lock. */
int folder_lock__take(int at, const char *path);

#endif
