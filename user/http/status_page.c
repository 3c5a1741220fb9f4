// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "base/embed.h"
#include "base/xalloc.h"
#include "http/status_page.h"

#define OK 200

EMBED(status_html, "http/status/status.html");
EMBED(status_css, "http/status/status.css");
EMBED(status_js, "http/status/status.js");

static void reply(struct http_request *request, const char *type, const char *text, uint64_t size)
{
	http_request__reply(request, OK, type, memcpy(xmalloc(size), text, size), size);
}

void status_page__html(void *context, struct http_request *request)
{
	(void)context;
	reply(request, "text/html; charset=utf-8", status_html_text, status_html_size);
}

void status_page__css(void *context, struct http_request *request)
{
	(void)context;
	reply(request, "text/css; charset=utf-8", status_css_text, status_css_size);
}

void status_page__js(void *context, struct http_request *request)
{
	(void)context;
	reply(request, "text/javascript; charset=utf-8", status_js_text, status_js_size);
}
