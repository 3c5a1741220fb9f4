/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the agent to the process that sends: one message for each request, with a file in memory
 * that has its body.  A message is taken whole, at once, or not at all, so that the agent never
 * waits.
 */
#ifndef PYBPFPROF_HANDOVER_H
#define PYBPFPROF_HANDOVER_H

#include <stddef.h>
#include <stdint.h>

struct handover {
	uint32_t destination;  /* its number */
	int64_t start_unix_ns; /* of the window */
	uint64_t samples;
	uint64_t length; /* of the body */
};

/* 0, or -errno: -EAGAIN where the other side does not keep up. */
int handover__send(int socket, const struct handover *handover, const void *body);

/* 1 and *BODY, for the caller to free; 0: the other side has ended; or -errno. */
int handover__receive(int socket, struct handover *handover, void **body);

#endif
