// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "agent/made_pages.h"
#include "base/now.h"
#include "base/xalloc.h"

#define HTTP_ERROR 500

#define NS_PER_S 1000000000LL

#define FRESH_NS (1 * NS_PER_S)

/* What is older says too little of now. */
#define SHOWN_NS (60 * NS_PER_S)

static void forget(struct made_page *made)
{
	http_page__free(made->page);
	free(made->query);
	*made = (struct made_page){ 0 };
}

void made_pages__forget(struct made_pages *pages)
{
	for (size_t i = 0; i < MADE_PAGES_MAX; i++)
		forget(&pages->made[i]);
}

static bool is_same(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

/* The one of QUERY, or whose place that may have: none's, or the oldest one's. */
static struct made_page *find(struct made_pages *pages, const char *query)
{
	struct made_page *oldest = &pages->made[0];

	for (size_t i = 0; i < MADE_PAGES_MAX; i++) {
		struct made_page *made = &pages->made[i];

		if (made->page && is_same(made->query, query))
			return made;
		if (made->made_ns < oldest->made_ns)
			oldest = made;
	}
	return oldest;
}

/* Returns how long that took of CPU time. */
static int64_t make(struct made_pages *pages, void *context, struct made_page *made,
		    const char *query)
{
	int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	forget(made);
	*made = (struct made_page){
		.query = query ? xstrdup(query) : NULL,
		.page = pages->make(context, query),
		.made_ns = now_ns(),
	};
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
}

int64_t made_pages__answer(struct made_pages *pages, void *context, double share,
			   struct http_request *request, const char *query)
{
	int64_t wait_ns = allowance__wait_ns(&pages->allowance), cost_ns = 0, age_ns;
	struct made_page *made = find(pages, query);
	bool is_there = made->page && is_same(made->query, query);

	age_ns = now_ns() - made->made_ns;
	if (is_there && age_ns < (wait_ns ? SHOWN_NS : FRESH_NS)) {
		http_request__show(request, made->page);
		return 0;
	}
	if (wait_ns) {
		http_request__put_off(request, wait_ns, "the CPU budget for HTTP is used up");
		return 0;
	}
	cost_ns = make(pages, context, made, query);
	allowance__charge(&pages->allowance, cost_ns, share);
	if (made->page)
		http_request__show(request, made->page);
	else
		http_request__say(request, HTTP_ERROR, "cannot write the profile");
	return cost_ns;
}
