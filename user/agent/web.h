/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent serves over HTTP:
 *
 *	/		a page with the processes and a flame graph of the last minute or two
 *	/flamegraph	that flame graph alone; ?service=NAME: of that service
 *	/status		the numbers of the page, as JSON
 *	/metrics	for Prometheus
 *	/healthz	"ok" while the agent's loop runs
 *	/readyz		"ok" while all sinks accept windows
 *	/debug/pprof/profile	a pprof profile of the next ?seconds=30; ?service=NAME
 */
#ifndef PYBPFPROF_WEB_H
#define PYBPFPROF_WEB_H

#include <stdint.h>

#include "agent/agent.h"

struct web;

/* Listens on the address of AGENT's options.  A default address that is taken is not an error: *WEB
 * is NULL then, as it is if the agent is not to listen.  Returns NULL, with *WEB for web__close, or
 * what is wrong, which the caller frees.  The functions below, except web__serve, accept NULL. */
char *web__open(struct agent *agent, struct web **web);
void web__close(struct web *web);

/* Adds a window to the flame graph and to the profiles that clients wait for. */
void web__take(struct web *web, const struct labelled_window *window);

/* Frees the samples of the flame graph and the cached pages, because memory is short. */
void web__forget(struct web *web);

/* For the recording's loop: see recording.h. */
int web__fd(const struct web *web);
int64_t web__serve(struct web *web);

#endif
