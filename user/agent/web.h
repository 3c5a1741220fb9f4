/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent tells over HTTP:
 *
 *	/		a page with the processes and a flame graph of the last minute or two
 *	/flamegraph	that flame graph alone; ?service=NAME: of that service
 *	/status		what the page shows, as JSON
 *	/metrics	for Prometheus
 *	/healthz	"ok" as long as the agent's loop goes round
 *	/readyz		"ok" while it samples
 *	/debug/pprof/profile	a pprof profile of the next ?seconds=30; ?service=NAME
 */
#ifndef PYBPFPROF_WEB_H
#define PYBPFPROF_WEB_H

#include <stdint.h>

#include "agent/agent.h"

struct web;

/* Listens where AGENT's options say, which is not fatal where nobody chose that address.  NULL with
 * *WEB, NULL: it does not listen, for web__close, or what is wrong, which the caller frees.  The
 * others take NULL, too. */
char *web__open(struct agent *agent, struct web **web);
void web__close(struct web *web);

/* Takes note of a window, before it is cleared. */
void web__take(struct web *web, const struct labelled_window *window);

/* Gives up what the flame graph is of, where memory is short. */
void web__forget(struct web *web);

/* CPU time that went into what was asked. */
double web__cpu_seconds(const struct web *web);

/* As a recording's loop has it: recording.h. */
int web__fd(const struct web *web);
int64_t web__serve(struct web *web);

#endif
