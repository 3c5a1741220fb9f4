/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's page: its files, which are part of the program. */
#ifndef PYBPFPROF_STATUS_PAGE_H
#define PYBPFPROF_STATUS_PAGE_H

#include "http/http_server.h"

/* Answer with the page, its style and its script. */
void status_page__html(void *context, struct http_request *request);
void status_page__css(void *context, struct http_request *request);
void status_page__js(void *context, struct http_request *request);

#endif
