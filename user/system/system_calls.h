/* SPDX-License-Identifier: BSD-2-Clause */
/* The system calls that this process may make. */
#ifndef PYBPFPROF_SYSTEM_CALLS_H
#define PYBPFPROF_SYSTEM_CALLS_H

enum network {
	NETWORK_REFUSED,
	NETWORK_ALLOWED,
};

/* Makes the kernel refuse, for the rest of the process, what a sampling profiler never does: start
 * a program, signal, stop or write to another process, and, with NETWORK_REFUSED, use the network.
 * Set no_new_privs before.  0 or -errno; -EINVAL if the kernel has no such filter. */
int system_calls__confine(enum network network);

#endif
