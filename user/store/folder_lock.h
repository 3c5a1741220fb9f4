/* SPDX-License-Identifier: BSD-2-Clause */
/* A folder that one process at a time may write to. */
#ifndef PYBPFPROF_FOLDER_LOCK_H
#define PYBPFPROF_FOLDER_LOCK_H

/* Locks the folder PATH, as openat(2) finds it from AT, and waits a while for who has it now: the
 * agent before this one may still be at its end.  A descriptor, which has it until it is closed; -1
 * with errno, which is EWOULDBLOCK where another process keeps it. */
int folder_lock__take(int at, const char *path);

#endif
