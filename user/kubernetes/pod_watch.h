/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that asks the API server for the pods of this node, and is told what becomes of them.
 */
#ifndef PYBPFPROF_POD_WATCH_H
#define PYBPFPROF_POD_WATCH_H

#include <stdbool.h>

#include "kubernetes/api_server.h"
#include "kubernetes/pod_board.h"

/* Keeps BOARD what the pods of NODE are until the other side of SOCKET is closed.  Gives up all
 * privileges first.  Returns whether it could. */
bool pod_watch__run(int socket, const struct api_server *server, const char *node,
		    struct pod_board *board);

#endif
