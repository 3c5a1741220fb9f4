/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that follows this node's pods at the API server. */
#ifndef PYBPFPROF_POD_WATCH_H
#define PYBPFPROF_POD_WATCH_H

#include <stdbool.h>

#include "kubernetes/api_server.h"
#include "kubernetes/pod_board.h"

/* Writes the pods of NODE to BOARD until the other side of SOCKET is closed.  Gives up all
 * privileges first.  Returns whether it could begin. */
bool pod_watch__run(int socket, const struct api_server *server, const char *node,
		    struct pod_board *board);

#endif
