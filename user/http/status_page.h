/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of the agent's page, which are embedded in the program. */
#ifndef PYBPFPROF_STATUS_PAGE_H
#define PYBPFPROF_STATUS_PAGE_H

#include "http/http_server.h"

/* Routes that answer with the page, its style and its script. */
void status_page__html(void *context, struct http_request *request);
void status_page__css(void *context, struct http_request *request);
void status_page__js(void *context, struct http_request *request);

#endif
