/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process may ask of the kernel. */
#ifndef PYBPFPROF_SYSTEM_CALLS_H
#define PYBPFPROF_SYSTEM_CALLS_H

enum network {
	NETWORK_REFUSED,
	NETWORK_ALLOWED,
};

/* Has the kernel refuse, to the process's end, what a profiler that samples never does: to start a
 * program, to signal, stop or write to another process, and to reach the network where NETWORK says
 * so.  To be called after no_new_privs is set.  0 or -errno; -EINVAL where the kernel has no such
 * filter. */
int system_calls__confine(enum network network);

#endif
