/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the agent to the push process: a message for each request, and with it a memfd that has the
 * body.  A message is sent as a whole or not at all, so the agent never waits.
 */
#ifndef PYBPFPROF_HANDOVER_H
#define PYBPFPROF_HANDOVER_H

#include <stddef.h>
#include <stdint.h>

struct handover {
	uint32_t destination;  /* its index */
	int64_t start_unix_ns; /* of the window */
	uint64_t samples;
	uint64_t length; /* of the body */
};

/* 0, or -errno; -EAGAIN if the other side does not keep up. */
int handover__send(int socket, const struct handover *handover, const void *body);

/* 1 with *BODY, which the caller frees; 0 if the other side has closed the socket; or -errno. */
int handover__receive(int socket, struct handover *handover, void **body);

#endif
