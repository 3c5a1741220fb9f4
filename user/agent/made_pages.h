/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is made for who asks, and shown to others who ask the same within a second; and
 * for longer, where making it anew would take more CPU time than there is for that.
 */
#ifndef PYBPFPROF_MADE_PAGES_H
#define PYBPFPROF_MADE_PAGES_H

#include "agent/allowance.h"
#include "http/http_server.h"

/* Of one path, by what is asked for there. */
#define MADE_PAGES_MAX 4

struct made_page {
	char *query;
	struct http_page *page; /* NULL: there is none */
	int64_t made_ns;
};

struct made_pages {
	/* A page of QUERY, NULL: of all. */
	struct http_page *(*make)(void *context, const char *query);
	struct allowance allowance;
	struct made_page made[MADE_PAGES_MAX];
};

/* Answers with one that is made of CONTEXT, for SHARE of a CPU, or was; or says when to ask again.
 * Returns the CPU time that it took to make it; 0: it was not made. */
int64_t made_pages__answer(struct made_pages *pages, void *context, double share,
			   struct http_request *request, const char *query);

void made_pages__forget(struct made_pages *pages);

#endif
